import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** RLock of Redisson and its relatives: a hash. */
final class RedissonLibrary implements Library {
    enum Kind {
        /** A lease of its own, which nothing renews. */
        LEASE,
        /** No lease: the watchdog renews it each third of its timeout. */
        WATCHDOG,
        /** As LEASE, at a cluster. */
        CLUSTER,
        FENCED,
        SPIN,
        FAIR,
        WRITE
    }

    /** The watchdog's timeout, ms: longer than the rest of a lease that a test leaves. */
    private static final long TIMEOUT = 45_000;

    private final RedissonClient client;
    private final Kind kind;

    RedissonLibrary(String address, Kind kind) {
        Config config = new Config().setLockWatchdogTimeout(TIMEOUT);
        if (kind == Kind.CLUSTER) {
            config.useClusterServers().addNodeAddress("redis://" + address);
        } else {
            config.useSingleServer().setAddress("redis://" + address).setConnectionMinimumIdleSize(1);
        }
        client = Redisson.create(config);
        this.kind = kind;
    }

    private RLock lock(String name) {
        return switch (kind) {
            case LEASE, WATCHDOG, CLUSTER -> client.getLock(name);
            case FENCED -> client.getFencedLock(name);
            case SPIN -> client.getSpinLock(name);
            case FAIR -> client.getFairLock(name);
            case WRITE -> client.getReadWriteLock(name).writeLock();
        };
    }

    @Override
    public Held acquire(String name, long ttl, long wait) throws Exception {
        RLock lock = lock(name);
        if (!lock.tryLock(wait, kind == Kind.WATCHDOG ? -1 : ttl, TimeUnit.MILLISECONDS)) {
            return null;
        }
        return new Held() {
            /** There is no call for it but to enter again, which sets the lease. */
            @Override
            public boolean renew(long ttl) throws Exception {
                if (kind == Kind.WATCHDOG) {
                    throw new UnsupportedOperationException("its watchdog renews");
                }
                if (!lock.isHeldByCurrentThread() || !lock.tryLock(0, ttl, TimeUnit.MILLISECONDS)) {
                    return false;
                }
                lock.unlock();
                return true;
            }

            @Override
            public boolean release() {
                lock.unlock();
                return true;
            }
        };
    }
}
