import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.redis.spring.RedisLockProvider;
import org.springframework.data.redis.connection.RedisConnectionFactory;

/** ShedLock. It does not wait: here it is asked again every 10 ms. */
final class ShedLockLibrary implements Library {
    private static final long PAUSE = 10;
    private final RedisLockProvider provider;

    ShedLockLibrary(RedisConnectionFactory connections, boolean safeUpdate) {
        provider = new RedisLockProvider.Builder(connections).safeUpdate(safeUpdate).build();
    }

    @Override
    public Held acquire(String name, long ttl, long wait) throws Exception {
        long end = System.currentTimeMillis() + wait;
        while (true) {
            Optional<SimpleLock> lock =
                    provider.lock(new LockConfiguration(Instant.now(), name, Duration.ofMillis(ttl), Duration.ZERO));
            if (lock.isPresent()) {
                return new ShedHeld(lock.get());
            }
            if (System.currentTimeMillis() >= end) {
                return null;
            }
            Thread.sleep(PAUSE);
        }
    }

    private static final class ShedHeld implements Held {
        private SimpleLock lock;

        ShedHeld(SimpleLock lock) {
            this.lock = lock;
        }

        @Override
        public boolean renew(long ttl) {
            Optional<SimpleLock> extended = lock.extend(Duration.ofMillis(ttl), Duration.ZERO);
            extended.ifPresent(l -> lock = l);
            return extended.isPresent();
        }

        @Override
        public boolean release() {
            lock.unlock();
            return true; // it does not say
        }
    }
}
