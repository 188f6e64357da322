// A peer of package interop: peer.js KIND HOST:PORT. Package peer has the protocol.
"use strict";

const readline = require("readline");
const { Redis } = require("ioredis");

const forever = 1 << 30; // tries

class Redlock4 {
  constructor(client) {
    const Redlock = require("redlock-4");
    this.once = new Redlock([client], { retryCount: 0 });
    this.patient = new Redlock([client], { retryCount: forever });
    this.refused = (e) => e instanceof Redlock.LockError;
  }

  attempt(name, ttl) {
    return this.once.lock(name, ttl);
  }

  wait(name, ttl) {
    return this.patient.lock(name, ttl);
  }

  renew(lock, ttl) {
    return lock.extend(ttl);
  }

  release(lock) {
    return lock.unlock();
  }
}

class Redlock5 {
  constructor(client) {
    const { default: Redlock, ExecutionError, ResourceLockedError } = require("redlock-5");
    this.once = new Redlock([client], { retryCount: 0 });
    this.patient = new Redlock([client], { retryCount: -1 });
    this.refused = (e) => e instanceof ExecutionError || e instanceof ResourceLockedError;
  }

  attempt(name, ttl) {
    return this.once.acquire([name], ttl);
  }

  wait(name, ttl) {
    return this.patient.acquire([name], ttl);
  }

  renew(lock, ttl) {
    return this.once.extend(lock, ttl);
  }

  release(lock) {
    return this.once.release(lock);
  }
}

const kinds = { "redlock-4": Redlock4, "redlock-5": Redlock5 };

class Peer {
  constructor(kind, client) {
    this.library = new kinds[kind](client);
    this.client = client;
    this.held = new Map();
  }

  // lock returns undefined if the lock is another's. The libraries count tries and have no time limit: a
  // lock that comes too late is released.
  async lock(name, ttl, wait) {
    try {
      if (!(wait > 0)) return await this.library.attempt(name, ttl);
      let timer;
      const late = new Promise((resolve) => (timer = setTimeout(resolve, wait)));
      const lock = this.library.wait(name, ttl);
      const first = await Promise.race([lock, late]);
      clearTimeout(timer);
      if (first === undefined) lock.then((l) => this.library.release(l)).catch(() => {});
      return first;
    } catch (e) {
      if (this.library.refused(e)) return undefined;
      throw e;
    }
  }

  async acquire(name, ttl, wait) {
    const lock = await this.lock(name, Number(ttl), Number(wait));
    if (lock === undefined) return "no";
    this.held.set(name, lock);
    return "ok";
  }

  async renew(name, ttl) {
    this.held.set(name, await this.library.renew(this.held.get(name), Number(ttl)));
    return "ok";
  }

  async release(name) {
    await this.library.release(this.held.get(name));
    return "ok";
  }

  async hammer(name, ttl, until) {
    const inside = "inside:" + name;
    let cycles = 0;
    let violations = 0;
    let longest = 0;
    let begin = performance.now();
    for (let left; (left = until - Date.now()) > 0; ) {
      const lock = await this.lock(name, Number(ttl), left);
      longest = Math.max(longest, performance.now() - begin);
      if (lock === undefined) continue;
      if ((await this.client.incr(inside)) !== 1) violations++;
      cycles++;
      await this.client.decr(inside);
      await this.library.release(lock);
      begin = performance.now();
    }
    return `ok ${cycles} ${violations} ${Math.round(longest)}`;
  }

  // micros is the Unix time in microseconds.
  micros() {
    return Math.round((performance.timeOrigin + performance.now()) * 1000);
  }

  async answer([verb, ...words]) {
    const begin = this.micros();
    let outcome;
    try {
      outcome = await this[verb](...words);
    } catch (e) {
      outcome = this.library.refused(e) ? "no" : "error " + String(e).replace(/\s+/g, " ");
    }
    console.log(begin, this.micros(), outcome);
  }
}

async function main() {
  const [kind, address] = process.argv.slice(2);
  const [host, port] = address.split(":");
  const client = new Redis({ host, port: Number(port) });
  await client.ping();
  const peer = new Peer(kind, client);
  let last = Promise.resolve();
  readline
    .createInterface({ input: process.stdin })
    .on("line", (line) => (last = last.then(() => peer.answer(line.trim().split(/\s+/)))))
    .on("close", () => process.exit(0));
  console.log("ready");
}

main().catch((e) => {
  console.error(e);
  process.exit(1);
});
