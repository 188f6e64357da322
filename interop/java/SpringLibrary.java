import java.time.Duration;
import java.util.ConcurrentModificationException;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.integration.redis.util.RedisLockRegistry;
import org.springframework.integration.support.locks.DistributedLock;

/** RedisLockRegistry of Spring Integration. */
final class SpringLibrary implements Library {
    private final RedisLockRegistry registry;

    SpringLibrary(RedisConnectionFactory connections, RedisLockRegistry.RedisLockType type) {
        registry = new RedisLockRegistry(connections, "registryKey");
        registry.setRedisLockType(type);
    }

    @Override
    public Held acquire(String name, long ttl, long wait) throws Exception {
        DistributedLock lock = registry.obtain(name);
        if (!lock.tryLock(Duration.ofMillis(wait), Duration.ofMillis(ttl))) {
            return null;
        }
        return new Held() {
            @Override
            public boolean renew(long ttl) {
                return held(() -> registry.renewLock(name, Duration.ofMillis(ttl)));
            }

            @Override
            public boolean release() {
                return held(lock::unlock);
            }
        };
    }

    /** Reports whether the lock was held. */
    private static boolean held(Runnable call) {
        try {
            call.run();
            return true;
        } catch (IllegalStateException | ConcurrentModificationException e) {
            return false;
        }
    }
}
