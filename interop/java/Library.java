/** A lock library with a client. TTLs and waits are in milliseconds. */
interface Library {
    /** Makes one attempt if wait is 0, and returns null if the lock is another's. */
    Held acquire(String name, long ttl, long wait) throws Exception;

    /** A held lock. Its methods return false if it is not held any more. */
    interface Held {
        boolean renew(long ttl) throws Exception;

        boolean release() throws Exception;
    }
}
