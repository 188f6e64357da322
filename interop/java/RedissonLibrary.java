import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** RLock of Redisson: a hash. */
final class RedissonLibrary implements Library {
    private final RedissonClient client;

    RedissonLibrary(String address) {
        Config config = new Config();
        config.useSingleServer().setAddress("redis://" + address).setConnectionMinimumIdleSize(1);
        client = Redisson.create(config);
    }

    @Override
    public Held acquire(String name, long ttl, long wait) throws Exception {
        RLock lock = client.getLock(name);
        if (!lock.tryLock(wait, ttl, TimeUnit.MILLISECONDS)) {
            return null;
        }
        return new Held() {
            @Override
            public boolean renew(long ttl) {
                throw new UnsupportedOperationException("its watchdog renews");
            }

            @Override
            public boolean release() {
                lock.unlock();
                return true;
            }
        };
    }
}
