------------------------------- MODULE Lease -------------------------------
(***************************************************************************)
(* One lock in one key of one server, and clients that acquire, renew,     *)
(* release, resume, hand over, give up and crash. Commands are executed    *)
(* late, in any order, or never. Replies are late or lost. Time is         *)
(* discrete and relative: no state has a date, so runs have no end.        *)
(*                                                                         *)
(* A client is one Lock: it is made by one acquire, one resume, or one     *)
(* hand-over. Its name also stands for the token that it makes, which is   *)
(* random and never used twice. Each action names the code that it models, *)
(* as path:function.                                                       *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS
  Clients, None,
  TTL,         \* length of a lease, in ticks
  Late,        \* a command is executed within Late ticks of its send, or never
  Drift,       \* a client's clock gains or loses at most this during one lease
  Margin,      \* its Deadline is this much before the end that it computes
  MaxSends,    \* how often an acquire or a resume is sent
  HandOver,    \* handover.Config.Tenure
  Block,       \* how many fencing tokens a hand-over reserves at once
  Ahead,       \* GETSET with dates: how far one client's clock is ahead of another's. The code: 0
  Features,    \* of "fence", "resume", "break", "handover", "crash": what clients and operators do
  Mistakes     \* a set of the following; {} is the code
\* "nocompare":   a release deletes the key whatever it holds
\* "twocommands": SETNX, and EXPIRE behind it
\* "fromreply":   the Deadline counts from the reply
\* "onecleanup":  an abandoned acquire is cleaned up once
\* "grant":       a release passes the key on to a waiter, which did not send
\* "breakall":    Break deletes the key whatever it holds
\* "sametoken":   a resume keeps the token
\* "samefence":   a resume keeps the fencing token
\* "noundo":      a resume that is abandoned is not undone
\* "unreserved":  a hand-over counts the fencing token up without asking the server
\* "newdeadline": a hand-over begins a new lease, without a renewal
\* "nodisown":    a Lock whose Handle was taken is handed over
\* "noend":       hand-overs go on beyond HandOver

F(feature) == feature \in Features
M(mistake) == mistake \in Mistakes

VARIABLES
  key,         \* at the server: [tok, left], left is the PTTL
  ctr,         \* at the server: the fence counter
  net, rep,    \* commands and replies on their way
  st,          \* of a client: "idle", "asks", "gets" (by a hand-over), "holds", "over" or "dead"
  tok, old,    \* the token that it relies on; the token that its resume replaces
  left,        \* true time until its Deadline
  fence,       \* its fencing token
  first, sends,\* age of the first send of its acquire; their number, less one that is known to be executed
  clean,       \* how many ticks its clean-up goes on
  gave,        \* its Handle was taken
  stale,       \* for how long a Break or a resume has had its key
  held,        \* age of the hold in the key since its acquire was answered, HandOver at most
  block,       \* the last fencing token that the process of that hold has reserved
  best,        \* the highest fencing token with which a Lock was made
  orphan       \* for how long the key has held a token on which no client relies

server  == <<key, ctr>>
clients == <<st, tok, old, left, fence, first, sends, clean, gave>>
hold    == <<held, block>>
vars    == <<server, net, rep, clients, stale, hold, best, orphan>>

Forever == TTL + 1                       \* a key without end
Free    == [tok |-> None, left |-> 0]
Cap     == TTL + Late + 1
Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
\* A resend makes the earlier sends mute: their late replies do not make a Lock.
Cmd(op, c) == [op |-> op, by |-> c, tok |-> tok[c], old |-> old[c], age |-> 0, mute |-> FALSE]
Acquires == {"set", "resume"}
\* The replies in s that still mean something to their clients, which are in the states t.
Heeded(s, t) ==
  {r \in s : t[r.by] \in (CASE r.op = "renew" -> {"holds"} [] r.op = "raise" -> {"gets"}
                            [] OTHER -> {"asks", "idle"})}
Live(c) == st[c] \in {"asks", "gets", "holds"}
\* A send of the acquire may still be executed. Code:
\* strategies/keylock/internal/resolve/unanswered.go:Settled
Unanswered(c) == sends[c] > 1

Init ==
  /\ key = Free /\ ctr = 0 /\ net = {} /\ rep = {}
  /\ st = [c \in Clients |-> "idle"] /\ tok = [c \in Clients |-> c] /\ old = [c \in Clients |-> None]
  /\ left = [c \in Clients |-> 0] /\ fence = [c \in Clients |-> 0]
  /\ first = [c \in Clients |-> 0] /\ sends = [c \in Clients |-> 0]
  /\ clean = [c \in Clients |-> 0] /\ gave = [c \in Clients |-> FALSE]
  /\ stale = [c \in Clients |-> 0] /\ held = 0 /\ block = 0 /\ best = 0 /\ orphan = 0

(******************************* Clients ***********************************)
\* An acquire, or a resume of the hold of the token t. It is sent again, with the same token, while
\* its outcome is unknown. Code: strategies/keylock/acquire.go:send,
\* strategies/keylock/internal/resolve/sends.go:Resolve
Ask(c, t) ==
  LET op == IF t = None THEN "set" ELSE "resume"
      mute == {IF m.by = c /\ m.op \in Acquires THEN [m EXCEPT !.mute = TRUE] ELSE m : m \in net}
      cmd == [op |-> op, by |-> c, tok |-> IF M("sametoken") /\ t # None THEN t ELSE c, old |-> t, age |-> 0,
              mute |-> FALSE]
  IN /\ st[c] \in {"idle", "asks"} /\ sends[c] < MaxSends /\ \A m \in net : m.by = c /\ m.op = op => m.age > 0
     /\ st[c] = "asks" => old[c] = t
     /\ net' = mute \cup {cmd} \cup (IF M("twocommands") THEN {[cmd EXCEPT !.op = "expire"]} ELSE {})
     /\ rep' = {r \in rep : r.by # c}
     /\ st' = [st EXCEPT ![c] = "asks"] /\ sends' = [sends EXCEPT ![c] = @ + 1]
     /\ tok' = [tok EXCEPT ![c] = cmd.tok] /\ old' = [old EXCEPT ![c] = t]
     /\ UNCHANGED <<server, left, fence, first, clean, gave, stale, hold, best, orphan>>

\* The Handle of c is taken. Code: locker/lock.go:Handle
Give(c) ==
  /\ F("resume") /\ st[c] = "holds" /\ ~gave[c] /\ gave' = [gave EXCEPT ![c] = TRUE]
  /\ UNCHANGED <<server, net, rep, st, tok, old, left, fence, first, sends, clean, stale, hold, best, orphan>>
\* Another process resumes the hold of a Handle. Code: strategies/keylock/acquire.go:newAttempt
Resume(c) == F("resume") /\ \E d \in Clients \ {c} : gave[d] /\ Ask(c, tok[d])

\* A renewal; one is in flight at most. Code: strategies/keylock/hold.go:renew
Renew(c) ==
  /\ st[c] = "holds" /\ \A m \in net \cup rep : m.by = c => m.op # "renew"
  /\ net' = net \cup {Cmd("renew", c)}
  /\ UNCHANGED <<server, rep, clients, stale, hold, best, orphan>>

\* c no longer relies on the lock. It compares and deletes, or undoes its resume. While a send of its
\* acquire is unanswered, it goes on until that can no longer be executed.
\* Code: strategies/keylock/release.go:end, strategies/keylock/release.go:undoOp,
\* strategies/keylock/internal/resolve/cleanup.go:CleanUp
Ends(c) == IF old[c] = None \/ M("sametoken") THEN "del" ELSE "undo"
Repeats(c, s) == IF Unanswered(c) \/ s = "asks" THEN (IF M("onecleanup") THEN 0 ELSE Late + 1) ELSE 0
End(c) ==
  /\ st' = [st EXCEPT ![c] = "over"] /\ left' = [left EXCEPT ![c] = 0]
  /\ IF M("noundo") /\ old[c] # None THEN UNCHANGED <<net, clean>>
     ELSE /\ net' = net \cup {Cmd(Ends(c), c)} /\ clean' = [clean EXCEPT ![c] = Repeats(c, st[c])]

\* A release, or an acquire that is abandoned. Code: strategies/keylock/release.go:end,
\* strategies/keylock/acquire.go:run
Leave(c) ==
  /\ Live(c) /\ End(c) /\ rep' = Heeded(rep, st')
  /\ UNCHANGED <<server, tok, old, fence, first, sends, gave, stale, hold, best, orphan>>

\* The process of c ends: before its release, or while it cleans up. No code: a fault.
Crash(c) ==
  /\ F("crash") /\ (Live(c) \/ (st[c] = "over" /\ (clean[c] > 0 \/ \E m \in net : m.by = c)))
  /\ st' = [st EXCEPT ![c] = "dead"] /\ left' = [left EXCEPT ![c] = 0] /\ clean' = [clean EXCEPT ![c] = 0]
  /\ rep' = Heeded(rep, st')
  /\ UNCHANGED <<server, net, tok, old, fence, first, sends, gave, stale, hold, best, orphan>>

\* The hold of c goes to d, a waiter of the same process, and no command is sent. There is no
\* hand-over if too little is left of the lease, after HandOver, or if the Handle of c was taken.
\* Code: middleware/handover/lease.go:handOver, middleware/handover/lease.go:Token,
\* middleware/handover/tenure.go:handOn
Pass(c, d) ==
  LET known == ~F("fence") \/ fence[c] < block \/ M("unreserved")
  IN /\ F("handover") /\ c # d /\ st[c] = "holds" /\ st[d] = "idle" /\ 4 * left[c] >= TTL
     /\ (held < HandOver \/ M("noend")) /\ (~gave[c] \/ M("nodisown"))
     /\ st' = [st EXCEPT ![c] = "over", ![d] = IF known THEN "holds" ELSE "gets"]
     /\ left' = [left EXCEPT ![c] = 0, ![d] = IF M("newdeadline") THEN TTL - Margin ELSE left[c]]
     /\ tok' = [tok EXCEPT ![d] = tok[c]]
     /\ fence' = [fence EXCEPT ![d] = IF F("fence") THEN fence[c] + 1 ELSE 0]
     /\ best' = IF known THEN Max(best, fence'[d]) ELSE best
     /\ stale' = [stale EXCEPT ![d] = stale[c], ![c] = 0]
     /\ sends' = [sends EXCEPT ![d] = sends[c]] \* those of c may still be executed
     /\ rep' = Heeded(rep, st')
     /\ UNCHANGED <<server, net, old, first, clean, gave, hold, orphan>>

\* d reserves fencing tokens before it has the Lock. Code: middleware/handover/tenure.go:reserve
Reserve(d) ==
  /\ st[d] = "gets" /\ \A m \in net \cup rep : m.by = d => m.op # "raise"
  /\ net' = net \cup {Cmd("raise", d)}
  /\ UNCHANGED <<server, rep, clients, stale, hold, best, orphan>>

\* An operator: one script finds the token, and a release of that token follows.
\* Code: strategies/keylock/break.go:FindHolds, strategies/keylock/break.go:endHolds
Break ==
  /\ F("break") /\ key.tok # None /\ \A m \in net : m.op # "break"
  /\ net' = net \cup {[op |-> "break", by |-> None, tok |-> key.tok, old |-> None, age |-> 0, mute |-> FALSE]}
  /\ UNCHANGED <<server, rep, clients, stale, hold, best, orphan>>

\* The Deadline is computed with the client's own clock, which is off by d at its end.
\* Code: strategies/keylock/hold.go:deadlineOf
Until(age, d) == TTL - Margin + d - age

\* A reply arrives. Code: strategies/keylock/acquire.go:read, strategies/keylock/acquire.go:confirm,
\* strategies/keylock/acquire.go:checkDeadline, strategies/keylock/hold.go:extend
Receive(r) ==
  LET c == r.by
      age == CASE r.res = "granted" -> 0      \* no send of ours: it counts from what we know
               [] M("fromreply")    -> 0
               [] r.res = "own"     -> first[c]  \* an earlier send acquired it: take the first
               [] OTHER             -> r.age
  IN /\ UNCHANGED <<server, tok, first, gave, stale, orphan>>
     /\ sends' = IF r.res = "own" THEN [sends EXCEPT ![c] = @ - 1] ELSE sends \* one is known to be executed
     /\ CASE r.res = "no" /\ (st[c] # "asks" \/ Unanswered(c)) ->
               End(c) /\ UNCHANGED <<old, fence, best, hold>>
          [] r.res = "no" -> \* refused, and nothing else is on its way
               st' = [st EXCEPT ![c] = "over"] /\ UNCHANGED <<left, net, old, clean, fence, best, hold>>
          [] r.op = "raise" ->
               /\ st' = [st EXCEPT ![c] = "holds"] /\ block' = r.f /\ best' = Max(best, fence[c])
               /\ UNCHANGED <<left, net, old, clean, fence, held>>
          [] OTHER ->
               \E d \in (-Drift)..Drift :
                 IF Until(age, d) > 0
                 THEN /\ st' = [st EXCEPT ![c] = "holds"] /\ left' = [left EXCEPT ![c] = Max(@, Until(age, d))]
                      /\ old' = [old EXCEPT ![c] = None]
                      /\ fence' = IF st[c] = "holds" THEN fence ELSE [fence EXCEPT ![c] = r.f]
                      /\ best' = Max(best, fence'[c])
                      /\ held' = IF st[c] = "holds" \/ ~F("handover") THEN held ELSE 0
                      /\ block' = IF st[c] = "holds" \/ ~F("handover") THEN block ELSE r.f
                      /\ UNCHANGED <<net, clean>>
                 ELSE IF st[c] = "holds" THEN UNCHANGED <<st, left, net, old, clean, fence, best, hold>>
                 ELSE End(c) /\ UNCHANGED <<old, fence, best, hold>> \* after its Deadline: undone
     /\ rep' = Heeded(rep \ {r}, st')

(****************************** The server *********************************)
\* The key becomes k. stale begins for clients that a Break or a resume takes it from, if they know of
\* it: every client that is broken, and the one that gave its Handle away.
Becomes(k, takes) ==
  /\ key' = k
  /\ orphan' = IF k.tok = key.tok THEN orphan ELSE 0
  /\ stale' = [c \in Clients |->
       CASE k.tok = tok[c] -> 0
         [] /\ stale[c] = 0 /\ key.tok = tok[c] /\ Live(c)
            /\ takes = "break" \/ (takes = "resume" /\ gave[c]) -> 1
         [] OTHER -> stale[c]]

\* The server executes a command. Code: strategies/single/lua/acquire.lua, strategies/single/lua/resume.lua,
\* strategies/single/lua/undo_resume.lua, strategies/single/lua/renew.lua,
\* strategies/single/lua/release.lua, strategies/single/lua/raise_fence.lua,
\* strategies/keylock/lua/mint_fence.lua
Execute(m) ==
  LET t == m.tok
      mint == IF F("fence") THEN ctr + 1 ELSE 0
      acquires == m.op = "set" /\ (key.tok = None \/ key.left <= Ahead)
      takes == m.op = "resume" /\ key.tok = m.old /\ key.tok # t
      same == m.op = "resume" /\ M("sametoken") /\ key.tok = t
      answer(res, f) == IF m.mute THEN rep
        ELSE Heeded(rep \cup {[op |-> m.op, by |-> m.by, res |-> res, f |-> f, age |-> m.age]}, st)
      deletes == key.tok # None /\
        (CASE m.op = "del" -> key.tok = t \/ M("nocompare") [] m.op = "break" -> key.tok = t \/ M("breakall")
           [] OTHER -> FALSE)
      waiters == {w \in Clients : st[w] = "idle"}
      raised == Max(ctr, fence[m.by] - 1 + Block)
  IN /\ net' = net \ {m} /\ UNCHANGED <<clients, hold, best>>
     /\ CASE acquires ->
               /\ Becomes([tok |-> t, left |-> IF M("twocommands") THEN Forever ELSE TTL], "no")
               /\ ctr' = mint /\ rep' = answer("new", mint)
          [] takes \/ same ->
               /\ Becomes([tok |-> t, left |-> Max(TTL, key.left)], "resume")
               /\ ctr' = (IF M("samefence") THEN ctr ELSE mint) /\ rep' = answer("new", ctr')
          [] m.op \in Acquires /\ ~acquires /\ ~takes /\ ~same ->
               UNCHANGED <<key, ctr, orphan, stale>> /\ rep' = (IF key.tok = t THEN answer("own", ctr) ELSE answer("no", 0))
          [] m.op = "undo" ->
               /\ IF key.tok = t THEN Becomes([key EXCEPT !.tok = m.old], "no") ELSE UNCHANGED <<key, orphan, stale>>
               /\ UNCHANGED <<ctr, rep>>
          [] m.op = "renew" ->
               /\ key' = IF key.tok = t THEN [key EXCEPT !.left = Max(@, TTL)] ELSE key
               /\ rep' = answer(IF key.tok = t THEN "new" ELSE "no", 0) /\ UNCHANGED <<ctr, orphan, stale>>
          [] m.op = "expire" ->
               /\ key' = IF key.tok = None THEN key ELSE [key EXCEPT !.left = TTL]
               /\ UNCHANGED <<ctr, rep, orphan, stale>>
          [] m.op = "raise" ->
               /\ ctr' = (IF key.tok = t THEN raised ELSE ctr) /\ UNCHANGED <<key, orphan, stale>>
               /\ rep' = IF key.tok = t /\ raised = fence[m.by] - 1 + Block THEN answer("new", raised) ELSE answer("no", 0)
          [] deletes /\ M("grant") /\ waiters # {} ->
               \E w \in waiters :
                 /\ Becomes([tok |-> w, left |-> TTL], "no") /\ ctr' = mint
                 /\ rep' = rep \cup {[op |-> "set", by |-> w, res |-> "granted", f |-> mint, age |-> 0]}
          [] deletes -> Becomes(Free, m.op) /\ UNCHANGED <<ctr, rep>>
          [] OTHER -> UNCHANGED <<server, rep, orphan, stale>>

\* A command that is too old is lost, except one that ends the hold of a living client: the server
\* answers. A Lock is lost at its Deadline. Its caller then releases it at once, and the release is
\* sent. Code: locker/lifetime.go:lock, locker/state.go:release
Tick ==
  LET lost(c) == st[c] \in {"holds", "gets"} /\ left[c] = 1
      aged(s, most) == {[m EXCEPT !.age = @ + 1] : m \in {x \in s : x.age < most}}
      again == {c \in Clients : clean[c] > 0 \/ lost(c)}
  IN /\ \A m \in net : m.op \in {"del", "undo"} /\ st[m.by] # "dead" => m.age < Late
     /\ key' = CASE key.left = Forever -> key [] key.left <= 1 -> Free [] OTHER -> [key EXCEPT !.left = @ - 1]
     /\ net' = aged(net, Late) \cup {Cmd(Ends(c), c) : c \in again}
     /\ st' = [c \in Clients |-> IF lost(c) THEN "over" ELSE st[c]]
     /\ rep' = Heeded(aged(rep, TTL), st')
     /\ left' = [c \in Clients |-> Max(left[c] - 1, 0)]
     /\ first' = [c \in Clients |-> IF st[c] = "asks" THEN Min(first[c] + 1, TTL) ELSE 0]
     /\ clean' = [c \in Clients |-> IF lost(c) THEN Repeats(c, st[c]) ELSE Max(clean[c] - 1, 0)]
     /\ stale' = [c \in Clients |-> IF stale[c] > 0 /\ st'[c] \in {"asks", "gets", "holds"} THEN Min(stale[c] + 1, Cap) ELSE 0]
     /\ held' = IF F("handover") THEN Min(held + 1, HandOver) ELSE 0
     /\ orphan' = IF key'.tok # None /\ key'.tok = key.tok /\ \A c \in Clients : tok[c] = key.tok => st'[c] \in {"idle", "over", "dead"}
                  THEN Min(orphan + 1, Cap) ELSE 0
     /\ UNCHANGED <<ctr, tok, old, fence, sends, gave, block, best>>

Next == \/ Tick
        \/ Break
        \/ \E m \in net : Execute(m)
        \/ \E r \in rep : Receive(r)
        \/ \E c \in Clients : \/ Ask(c, None) \/ Renew(c) \/ Leave(c) \/ Crash(c)
                              \/ Give(c) \/ Resume(c) \/ Reserve(c) \/ \E d \in Clients : Pass(c, d)
Spec == Init /\ [][Next]_vars

(**************************** What must hold *******************************)
Believes(c) == st[c] = "holds"
\* One holder, but for a client whose hold an operator broke, or that gave its Handle away.
Exclusion == \A c, d \in Clients : Believes(c) /\ Believes(d) /\ stale[c] = 0 /\ stale[d] = 0 => c = d
\* A limit: such a client is not told.
OneBeliever == \A c, d \in Clients : Believes(c) /\ Believes(d) => c = d
\* It learns of the loss within a lease.
StaleEnds == \A c \in Clients : Believes(c) => stale[c] <= TTL
\* A loss is known at the Deadline, and that is not after the loss.
KnowsLoss == \A c \in Clients : Believes(c) => key.tok = tok[c] \/ stale[c] > 0
LossIsFinal == [][\A c \in Clients : st[c] \in {"over", "dead"} => st'[c] \in {"over", "dead"}]_vars
\* A key goes by its expiry, or by a command of its own holder or of an operator.
OwnDeleted == [][\A t \in Clients : key.tok = t /\ key'.tok # t /\ key.left > 1 =>
                   \E m \in net \ net' : (m.op \in {"del", "break", "undo"} /\ m.tok = t) \/ (m.op = "resume" /\ m.old = t)]_vars
\* Whatever happens to its client, a key ends one TTL after the last command for it.
EndsByItself == orphan < TTL + Late
\* If the clients live, their clean-up ends the key sooner than the TTL does.
CleanedUp == orphan > Late + 1 => \E c \in Clients : tok[c] = key.tok /\ st[c] = "dead"
\* A resume that is abandoned is undone as soon.
ResumeUndone == \A c \in Clients : st[c] = "over" /\ old[c] # None /\ key.tok = c => orphan <= Late + 1
\* Who has the key has a higher fencing token than all that believe the same, and all before it.
Fenced == \A c, d \in Clients : c # d /\ Believes(c) /\ Believes(d) /\ key.tok = tok[c] => fence[d] < fence[c]
FenceOrder == [][\A c \in Clients : ~Believes(c) /\ Believes(c)' /\ key.tok = tok'[c] => fence'[c] > best]_vars
\* Another process has a turn after HandOver.
TurnEnds == [][\A c, d \in Clients : st[c] = "holds" /\ st'[c] = "over" /\ st[d] = "idle" /\ st'[d] \in {"gets", "holds"}
                 => held < HandOver]_vars

Symmetry == {f \in [Clients -> Clients] : \A c, d \in Clients : f[c] = f[d] => c = d}
=============================================================================
