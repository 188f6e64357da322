"""A peer of package interop: peer.py KIND HOST:PORT. Package peer has the protocol."""

import os
import queue
import sys
import threading
import time

import redis
import redis_lock
from redis.lock import Lock


class RedisPy:
    """Lock of redis-py. A TTL of 0 is its default: a key without an end."""

    def __init__(self, client):
        self.client = client

    def acquire(self, name, ttl, wait):
        lock = Lock(self.client, name, timeout=ttl / 1000 or None)
        held = lock.acquire(blocking=wait > 0, blocking_timeout=wait / 1000 or None)
        return lock if held else None

    def renew(self, lock, ttl):
        lock.extend(ttl / 1000, replace_ttl=True)

    def release(self, lock):
        lock.release()


class PythonRedisLock:
    """python-redis-lock: whole seconds."""

    def __init__(self, client):
        self.client = client

    def acquire(self, name, ttl, wait):
        lock = redis_lock.Lock(self.client, name, expire=ttl // 1000)
        held = lock.acquire(blocking=wait > 0, timeout=max(1, wait // 1000) if wait else None)
        return lock if held else None

    def renew(self, lock, ttl):
        lock.extend(ttl // 1000)

    def release(self, lock):
        lock.release()

    def reset(self):
        redis_lock.reset_all(self.client)


KINDS = {"redis-py": RedisPy, "python-redis-lock": PythonRedisLock}
LOST = (redis.exceptions.LockError, redis_lock.NotAcquired)


class Peer:
    def __init__(self, kind, client):
        self.locks = KINDS[kind](client)
        self.client = client
        self.held = {}

    def acquire(self, name, ttl, wait):
        lock = self.locks.acquire(name, int(ttl), int(wait))
        if lock is None:
            return "no"
        self.held[name] = lock
        return "ok"

    def renew(self, name, ttl):
        self.locks.renew(self.held[name], int(ttl))
        return "ok"

    def release(self, name):
        self.locks.release(self.held.pop(name))
        return "ok"

    def reset(self):
        self.locks.reset()
        return "ok"

    def hammer(self, name, ttl, until):
        inside, cycles, violations, longest = "inside:" + name, 0, 0, 0
        begin = time.monotonic()
        while (left := int(until) - int(time.time() * 1000)) > 0:
            lock = self.locks.acquire(name, int(ttl), left)
            longest = max(longest, time.monotonic() - begin)
            if lock is None:
                continue
            if self.client.incr(inside) != 1:
                violations += 1
            cycles += 1
            self.client.decr(inside)
            self.locks.release(lock)
            begin = time.monotonic()
        return f"ok {cycles} {violations} {longest * 1000:.0f}"


def micros():
    return time.time_ns() // 1000


def read(commands):
    """The thread that reads: the process ends with its input, whatever it waits for."""
    for line in sys.stdin:
        commands.put(line.split())
    os._exit(0)


def main():
    kind, address = sys.argv[1:]
    host, port = address.split(":")
    # By default redis-py 8 gives up on a BLPOP after 5 s.
    peer = Peer(kind, redis.Redis(host=host, port=int(port), socket_timeout=None))
    commands = queue.Queue()
    threading.Thread(target=read, args=(commands,), daemon=True).start()
    print("ready", flush=True)
    while True:
        verb, *words = commands.get()
        begin = micros()
        try:
            outcome = getattr(peer, verb)(*words)
        except LOST:
            outcome = "no"
        except Exception as e:  # pylint: disable=broad-except
            outcome = "error " + " ".join(str(e).split())
        print(begin, micros(), outcome, flush=True)


main()
