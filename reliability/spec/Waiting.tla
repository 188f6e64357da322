------------------------------ MODULE Waiting ------------------------------
(***************************************************************************)
(* The queue of waiters of one lock at its server, with one place for each *)
(* process. Messages arrive at once, late or never. The question is how    *)
(* long the lock stays free while a healthy process waits.                 *)
(*                                                                         *)
(* Commands are executed at once; Lease has late and lost ones. With       *)
(* Try = 1 and Poll = 4 a tick stands for 500 ms. Each action names the    *)
(* code that it models, as path:function.                                  *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
  None, Never,
  Well, Deaf, Slow, \* processes that hear messages at once; not at all; after Delay
  Foreign,     \* processes of another library: SET NX and DEL, again and again
  Mortal,      \* those that may die, or give up, while they wait
  Crashing,    \* those that may die while they hold
  Reconnects,       \* a deaf or slow process may become well, by a new subscription
  Try, Poll,   \* the time to try of a woken waiter; the time until a waiter polls
  PollMarked, PollForeign, \* the same of a marked waiter, and of one that another library refused
  PassAfter,   \* a marked waiter that has waited so long takes a lock that is kept for another
  MarkFor,     \* how long a mark lasts; Never: without end
  Delay,       \* the delay of a message to a slow process
  TTL,         \* what is left of the lease when its holder dies
  Fair,        \* Config.Fair of strategies/single: a strict order
  Barge,       \* newcomers that do not wait may take the lock
  Counted,     \* PUBLISH counts the receivers, so that a dead process loses its place
  Turns,       \* a release may leave the lock to the next waiter of its own process
  Resends,     \* a release may be executed again
  Pause,       \* a process begins one acquire in a tick at most, so that time goes on
  Bound, MaxStalls, \* the properties Short and Few; Never: not counted
  Mistakes     \* a set of the following; {} is the code
\* "nomark":     a waiter that missed a wake-up loses its place, and is not marked
\* "forget":     the mark ends when its process acquires the lock
\* "flag":       a flag in the value of the lock says that somebody waits, and goes with the value
\* "grant":      a release makes the first waiter the holder
\* "all":        a release wakes everybody
\* "noleaseend": waiters do not try at the end of the holder's lease
\* "noadvance":  with Fair an attempt that finds the lock free wakes nobody
\* "nowaiter":   a waiter that a release relied on gives up and wakes nobody
\* "allturns":   a turn has no end

Ours  == Well \cup Deaf \cup Slow
Procs == Ours \cup Foreign
M(mistake) == mistake \in Mistakes

VARIABLES
  holder,      \* at the server
  lease,       \* what is left of the lease of a dead holder; Never: there is none
  rsv,         \* the waiter for which the key is reserved, and for how long
  placed,      \* those with a place in the queue
  woken, age,  \* the woken waiter, and since when
  marked,      \* how long each process is marked; 0: it is not
  in,          \* processes that know that they hold
  order,       \* those that wait, by the begin of their acquires: the order of the places
  waited,      \* for how long a deaf or slow one has waited, PassAfter at most
  kind,        \* of a process: "well", "deaf", "slow", "foreign", "dead"
  msg, poll,   \* the time until it tries because of a message, or by itself
  turn,        \* the process to which the last release left the lock; None: to all
  began,       \* with Pause: those that have begun an acquire in this tick
  idle,        \* how long a healthy process has waited while nobody used the lock
  stalls       \* how often that was as long as Try

server == <<holder, lease, rsv, placed, woken, age, marked>>
procs  == <<in, order, waited, kind, msg, poll, turn, began>>
vars   == <<server, procs, idle, stalls>>

Less(n) == IF n \in {0, Never} THEN n ELSE n - 1
Min(a, b) == IF a < b THEN a ELSE b
Waits(p) == \E i \in DOMAIN order : order[i] = p
Without(p) == SelectSeq(order, LAMBDA q : q # p)
FirstOf(S) == LET at == {i \in DOMAIN order : order[i] \in S}
              IN IF at = {} THEN None ELSE order[CHOOSE i \in at : \A j \in at : i <= j]
NoRsv == [for |-> None, left |-> 0]

Init ==
  /\ holder = None /\ lease = Never /\ rsv = NoRsv /\ placed = {} /\ woken = None /\ age = 0
  /\ marked = [p \in Procs |-> 0] /\ in = {} /\ order = <<>> /\ waited = [p \in Procs |-> 0]
  /\ kind = [p \in Procs |-> CASE p \in Well -> "well" [] p \in Deaf -> "deaf"
                                [] p \in Slow -> "slow" [] OTHER -> "foreign"]
  /\ msg = [p \in Procs |-> Never] /\ poll = [p \in Procs |-> Never]
  /\ turn = None /\ began = {} /\ idle = 0 /\ stalls = 0

(******************* The queue: strategies/keylock/lua/queue.lua *******************)
Queue == [placed |-> placed, woken |-> woken, age |-> age, marked |-> marked, told |-> {}]

\* The woken waiter of s has let its time to try pass, and is marked.
\* Code: strategies/keylock/lua/queue.lua:mark
Mark(s) ==
  [s EXCEPT !.woken = None, !.placed = @ \ {s.woken},
            !.marked = IF M("nomark") THEN @ ELSE [@ EXCEPT ![s.woken] = MarkFor]]

\* The attempt of p comes too late for its wake-up. Without marks it keeps its place.
\* Code: strategies/keylock/lua/queue.lua:is_marked
MarkLate(s, p) == IF s.woken = p /\ s.age >= Try /\ ~M("nomark") THEN Mark(s) ELSE s

\* p may take a lock that is kept for another. Code: strategies/keylock/lua/queue.lua:passes
Passes(s, p) == s.marked[p] > 0 /\ waited[p] >= PassAfter

\* A woken waiter whose time is over is dropped, unless the attempt is its own.
\* Code: strategies/keylock/lua/queue.lua:first_waiter
DropMissed(s, trying) ==
  IF s.woken \notin {None, trying} /\ s.age >= Try THEN Mark(s) ELSE s
First(s) == IF s.woken # None THEN s.woken ELSE FirstOf(s.placed)

\* Unless a waiter was woken, the first one is. One that is dead and hears nothing loses its place
\* where the server counts the receivers. Code: strategies/keylock/lua/queue.lua:wake_first
WakeFirst(s) ==
  LET gone == IF Counted THEN {p \in s.placed : kind[p] = "dead"} ELSE {}
      first == FirstOf(s.placed \ gone)
      before == {p \in gone : FirstOf({p, first} \ {None}) = p}
  IN IF s.woken # None THEN s
     ELSE [s EXCEPT !.placed = @ \ before, !.woken = first, !.age = 0,
                    !.told = IF first = None THEN @ ELSE @ \cup {first}]

\* Code: strategies/keylock/lua/queue.lua:wake
Wake(s) ==
  IF M("all") THEN [s EXCEPT !.told = s.placed, !.woken = None] ELSE WakeFirst(DropMissed(s, None))

\* A refused waiter takes its place, and is no longer woken; a marked one has none. left is what
\* the refusal says of the lease. It tries again after Again.
\* Code: strategies/keylock/lua/queue.lua:enqueue
Enqueue(s, p) ==
  IF s.marked[p] > 0 THEN s
  ELSE [s EXCEPT !.placed = @ \cup {p}, !.woken = IF @ = p THEN None ELSE @]
Again(s, p, left) ==
  LET own == IF s.marked[p] > 0 THEN PollMarked ELSE Poll IN
  CASE holder \in Foreign -> PollForeign   \* by its policy: middleware/retry/wait.go:pollsRarely
    [] M("noleaseend") -> own
    [] OTHER -> Min(own, left)

\* The queue becomes s, and messages are sent; those for heard are used up.
\* Code: strategies/keylock/lua/queue.lua:deliver, middleware/retry/waiter.go:begin
Becomes(s, heard) ==
  LET comes(p) == CASE kind[p] = "well" -> 0 [] kind[p] = "slow" -> Min(msg[p], Delay) [] OTHER -> Never
  IN /\ placed' = s.placed /\ woken' = s.woken /\ marked' = s.marked
     /\ age' = IF s.woken = None THEN 0 ELSE s.age
     /\ msg' = [p \in Procs |-> IF p \in heard THEN Never ELSE IF p \in s.told THEN comes(p) ELSE msg[p]]

(***************************** Attempts ************************************)
\* p acquires: its place goes, its mark stays.
\* Code: strategies/single/lua/acquire.lua, strategies/keylock/lua/queue.lua:leave_place
Acquire(p, s) ==
  /\ holder' = p /\ in' = in \cup {p} /\ order' = Without(p) /\ idle' = 0 /\ rsv' = NoRsv
  /\ Becomes([s EXCEPT !.placed = IF M("flag") THEN {} ELSE @ \ {p}, !.woken = IF @ = p THEN None ELSE @,
                       !.marked = IF M("forget") THEN [@ EXCEPT ![p] = 0] ELSE @], {p})
  /\ poll' = [poll EXCEPT ![p] = Never] /\ waited' = [waited EXCEPT ![p] = 0]
  /\ turn' = IF turn = p THEN p ELSE None
  /\ UNCHANGED <<lease, kind, began, stalls>>

Refuse(p, s, left) ==
  /\ Becomes(Enqueue(s, p), {p}) /\ poll' = [poll EXCEPT ![p] = Again(s, p, left)]
  /\ UNCHANGED <<holder, lease, rsv, in, order, waited, kind, turn, began, idle, stalls>>

\* An attempt of a waiter. Code: strategies/single/lua/acquire.lua,
\* strategies/keylock/lua/queue.lua:kept_for
Attempt(p) ==
  LET late == MarkLate(Queue, p)
      seen == DropMissed(late, p)
      next == IF Fair /\ First(seen) # p /\ ~M("noadvance") THEN WakeFirst(DropMissed(seen, None)) ELSE seen
      kept == IF Fair THEN First(next) \notin {None, p} ELSE next.woken \notin {None, p}
  IN CASE holder = p -> Acquire(p, late) \* only by the mistake "grant"
       [] holder # None -> Refuse(p, late, IF lease = Never THEN TTL ELSE lease)
       [] rsv.for = p -> Acquire(p, late)
       [] rsv.for # None /\ ~Passes(late, p) -> Refuse(p, late, rsv.left)
       [] Passes(late, p) -> Acquire(p, late)
       [] kept -> Refuse(p, next, IF next.woken = None THEN Poll ELSE Try - next.age)
       [] OTHER -> Acquire(p, next)

\* A waiter tries: it was woken, or polls. Code: middleware/retry/wait.go:await
Turn(p) == p \in Ours /\ Waits(p) /\ 0 \in {msg[p], poll[p]} /\ Attempt(p)

\* An acquire begins to wait; it tries at once. Code: middleware/retry/queue.go:enter
Begin(p) ==
  /\ p \in Ours /\ ~Waits(p) /\ p \notin in \cup began /\ kind[p] # "dead"
  /\ began' = IF Pause THEN began \cup {p} ELSE {}
  /\ order' = Append(order, p) /\ poll' = [poll EXCEPT ![p] = 0]
  /\ UNCHANGED <<server, in, waited, kind, msg, turn, idle, stalls>>

\* An attempt with NoWait does not use the queue. Code: strategies/keylock/acquire.go:beginsWithSetNX
BargeIn(p) ==
  /\ p \in Ours /\ Barge /\ ~Fair /\ holder = None /\ ~Waits(p) /\ kind[p] # "dead" /\ Acquire(p, Queue)

\* Another library sends SET NX, again and again. No code: another library.
ForeignTakes(p) ==
  /\ p \in Foreign /\ holder = None /\ rsv = NoRsv
  /\ holder' = p /\ in' = in \cup {p} /\ idle' = 0 /\ turn' = None
  /\ UNCHANGED <<lease, rsv, placed, woken, age, marked, order, waited, kind, msg, poll, began, stalls>>
\* It sends DEL, and wakes nobody. No code: another library.
ForeignReleases(p) ==
  /\ p \in Foreign \cap in /\ holder' = None /\ in' = in \ {p}
  /\ UNCHANGED <<lease, rsv, placed, woken, age, marked, order, waited, kind, msg, poll, turn, began, idle, stalls>>

(***************************** Releases ************************************)
\* The lock is free, and the first waiter is woken. Code: strategies/single/lua/release.lua
Free(s) ==
  LET w == Wake(s)
      first == First(w)
  IN /\ Becomes(w, {}) /\ holder' = IF M("grant") THEN first ELSE None
     /\ rsv' = IF Fair /\ first # None THEN [for |-> first, left |-> Try] ELSE NoRsv

\* Code: strategies/keylock/calls.go:endCall, middleware/retry/baton.go:released
Release(p) ==
  /\ p \in in \cap Ours /\ in' = in \ {p} /\ Free(Queue) /\ turn' = None
  /\ UNCHANGED <<lease, order, waited, kind, poll, began, idle, stalls>>

\* The next waiter of the same process tries at once, and no other process is woken. The process
\* does so once in a row; a turn ends within 3 ms. Code: middleware/retry/turn.go:serves,
\* strategies/single/lua/release.lua
KeepTurn(p) ==
  /\ Turns /\ ~Fair /\ p \in in \cap Ours /\ (turn = None \/ M("allturns"))
  /\ in' = in \ {p} /\ holder' = None /\ turn' = p
  /\ order' = Append(order, p) /\ poll' = [poll EXCEPT ![p] = 0]
  /\ UNCHANGED <<lease, rsv, placed, woken, age, marked, waited, kind, msg, began, idle, stalls>>

\* That waiter gives up: its process gives up the place, and wakes the first waiter.
\* Code: middleware/retry/baton.go:wakeOthers, strategies/single/lua/release.lua
WakeOthers(p) ==
  /\ Turns /\ turn = p /\ Waits(p) /\ poll[p] = 0 /\ kind[p] # "dead"
  /\ order' = Without(p) /\ poll' = [poll EXCEPT ![p] = Never] /\ waited' = [waited EXCEPT ![p] = 0]
  /\ LET s == [Queue EXCEPT !.placed = @ \ {p}, !.woken = IF @ = p THEN None ELSE @]
     IN IF holder = None /\ rsv.for \in {None, p} /\ ~M("nowaiter") THEN Free(s)
        ELSE Becomes(s, {p}) /\ UNCHANGED <<holder, rsv>>
  /\ turn' = None /\ UNCHANGED <<lease, in, kind, began, idle, stalls>>

\* A release is executed again: it was resent, or a clean-up repeats it. If the lock is free, the
\* first waiter is woken. Code: strategies/keylock/internal/resolve/cleanup.go:CleanUp,
\* strategies/single/lua/release.lua
Resend ==
  /\ Resends /\ holder = None /\ rsv = NoRsv /\ Free(Queue)
  /\ UNCHANGED <<lease, in, order, waited, kind, poll, turn, began, idle, stalls>>

(****************************** Faults *************************************)
\* A waiter dies, and its place stays until it no longer counts. No code: a fault.
Die(p) ==
  /\ p \in Mortal /\ Waits(p) /\ kind[p] # "dead" /\ kind' = [kind EXCEPT ![p] = "dead"]
  /\ msg' = [msg EXCEPT ![p] = Never] /\ poll' = [poll EXCEPT ![p] = Never]
  /\ UNCHANGED <<server, in, order, waited, turn, began, idle, stalls>>
\* The place of a dead waiter no longer counts. Code: strategies/keylock/lua/queue.lua:read_presence
Expire(p) ==
  /\ kind[p] = "dead" /\ Waits(p) /\ order' = Without(p) /\ placed' = placed \ {p}
  /\ woken' = IF woken = p THEN None ELSE woken
  /\ UNCHANGED <<holder, lease, rsv, age, marked, in, waited, kind, msg, poll, turn, began, idle, stalls>>
\* A holder dies. Its lease ends, which wakes nobody. No code: a fault.
Crash(p) ==
  /\ p \in Crashing \cap in /\ in' = in \ {p} /\ kind' = [kind EXCEPT ![p] = "dead"] /\ lease' = TTL
  /\ UNCHANGED <<holder, rsv, placed, woken, age, marked, order, waited, msg, poll, turn, began, idle, stalls>>
\* A new connection replaces a half-open one; its waiter tries. The mark stays.
\* Code: locker/driver/adapter/hub_write.go:probe, middleware/retry/subscribe.go:subscribe
Reconnect(p) ==
  /\ Reconnects /\ kind[p] \in {"deaf", "slow"} /\ kind' = [kind EXCEPT ![p] = "well"]
  /\ poll' = IF Waits(p) THEN [poll EXCEPT ![p] = 0] ELSE poll
  /\ msg' = [msg EXCEPT ![p] = Never]
  /\ UNCHANGED <<server, in, order, waited, turn, began, idle, stalls>>

\* Nothing that is due is late. No code: time.
Tick ==
  LET waste == in = {} /\ lease = Never /\ \E p \in Ours : kind[p] = "well" /\ Waits(p)
  IN /\ \A p \in Procs : msg[p] # 0 /\ poll[p] # 0
     /\ lease' = IF lease = 1 THEN Never ELSE Less(lease)
     /\ holder' = IF lease = 1 THEN None ELSE holder
     /\ rsv' = IF rsv.left <= 1 THEN NoRsv ELSE [rsv EXCEPT !.left = @ - 1]
     /\ age' = IF woken = None THEN 0 ELSE Min(age + 1, Try)
     /\ marked' = [p \in Procs |-> Less(marked[p])]
     /\ waited' = [p \in Procs |-> IF Waits(p) /\ p \notin Well THEN Min(waited[p] + 1, PassAfter) ELSE 0]
     /\ msg' = [p \in Procs |-> Less(msg[p])] /\ poll' = [p \in Procs |-> Less(poll[p])]
     /\ idle' = IF waste /\ Bound # Never THEN Min(idle + 1, Bound + 1) ELSE 0
     /\ stalls' = IF waste /\ idle + 1 = Try /\ MaxStalls # Never THEN Min(stalls + 1, MaxStalls + 1) ELSE stalls
     /\ began' = {} /\ UNCHANGED <<placed, woken, in, order, kind, turn>>

Next == \/ Tick \/ Resend
        \/ \E p \in Procs : \/ Begin(p) \/ BargeIn(p) \/ Turn(p) \/ Release(p) \/ KeepTurn(p) \/ WakeOthers(p)
                            \/ ForeignTakes(p) \/ ForeignReleases(p)
                            \/ Die(p) \/ Expire(p) \/ Crash(p) \/ Reconnect(p)

Fairness == /\ SF_vars(Tick)
            /\ \A p \in Ours : WF_vars(Turn(p)) /\ WF_vars(Release(p) \/ KeepTurn(p))
            /\ \A p \in Mortal : WF_vars(Expire(p))
            /\ \A p \in Deaf \cup Slow : WF_vars(Reconnect(p))
Spec == Init /\ [][Next]_vars
FairSpec == Spec /\ Fairness

(************************** What must hold *********************************)
OneHolder == Cardinality(in) <= 1 /\ in \subseteq {holder}
\* A release makes one healthy waiter try.
OneWoken == Cardinality({p \in Ours : kind[p] = "well" /\ msg[p] = 0}) <= 1
\* A marked waiter has no place and is not woken.
NoPlace == \A p \in Procs : marked[p] > 0 => p \notin placed /\ woken # p
\* While a healthy process waits, the lock is in use again within Bound ...
Short == idle <= Bound
\* ... and the time to try passes in vain a few times only.
Few == stalls <= MaxStalls
\* A healthy waiter holds at last, unless it gives up.
Served == \A p \in Ours : (Waits(p) /\ kind[p] = "well") ~> (~Waits(p) \/ kind[p] = "dead")
\* So does one that hears late or nothing.
LateServed == \A p \in Slow \cup Deaf : Waits(p) ~> p \in in
=============================================================================
