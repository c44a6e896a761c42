------------------------------ MODULE Session ------------------------------
(* Benchmark protocol "session": models/worlds/bench/session.py says the same. *)
EXTENDS Naturals, Sequences

CONSTANTS T,          \* number of tasks (1..T)
          Receivers,  \* set of receivers
          A,          \* attempts per task
          C           \* channel capacity

VARIABLES hst, lease, tst, ht, cn, led, at, rc, h2t, t2h
vars == <<hst, lease, tst, ht, cn, led, at, rc, h2t, t2h>>

Tasks == 1..T
Min(x, y) == IF x < y THEN x ELSE y

TASK(t)      == [k |-> "TASK",   t |-> t, a |-> 0]
ACC(t, a)    == [k |-> "ACC",    t |-> t, a |-> a]
REL(t)       == [k |-> "REL",    t |-> t, a |-> 0]
SHUT         == [k |-> "SHUT",   t |-> 0, a |-> 0]
ABORT        == [k |-> "ABORT",  t |-> 0, a |-> 0]
RESULT(t, a) == [k |-> "RESULT", t |-> t, a |-> a]
STATUS(t)    == [k |-> "STATUS", t |-> t, a |-> 0]

TypeOK ==
  /\ hst \in {"open", "shutting", "aborted"}
  /\ lease \in BOOLEAN
  /\ tst \in {"run", "drain", "dead"}
  /\ ht \in [Tasks -> {"idle", "sent", "done"}]
  /\ cn \in [Tasks -> 0..A]
  /\ led \in [Tasks -> {"none", "running", "waiting", "acked", "released"}]
  /\ at \in [Tasks -> 0..A]
  /\ rc \in [Tasks -> [Receivers -> {"idle", "downloading", "downloaded", "settled"}]]
  /\ Len(h2t) <= C /\ Len(t2h) <= C

Init ==
  /\ hst = "open" /\ lease = TRUE /\ tst = "run"
  /\ ht = [t \in Tasks |-> "idle"] /\ cn = [t \in Tasks |-> 0]
  /\ led = [t \in Tasks |-> "none"] /\ at = [t \in Tasks |-> 0]
  /\ rc = [t \in Tasks |-> [r \in Receivers |-> "idle"]]
  /\ h2t = <<>> /\ t2h = <<>>

\* ---------------------------------------------------------------- host
SendTask(t) ==
  /\ hst = "open" /\ lease /\ ht[t] = "idle" /\ Len(h2t) < C
  /\ IF t = 1 THEN TRUE ELSE ht[t - 1] # "idle"   \* IF, not \/: TLC would branch
  /\ ht' = [ht EXCEPT ![t] = "sent"]
  /\ h2t' = Append(h2t, TASK(t))
  /\ UNCHANGED <<hst, lease, tst, cn, led, at, rc, t2h>>

ResendTask(t) ==
  /\ hst = "open" /\ lease /\ ht[t] = "sent" /\ h2t = <<>>
  /\ h2t' = Append(h2t, TASK(t))
  /\ UNCHANGED <<hst, lease, tst, ht, cn, led, at, rc, t2h>>

Shutdown ==
  /\ hst = "open" /\ Len(h2t) < C
  /\ hst' = "shutting" /\ h2t' = Append(h2t, SHUT)
  /\ UNCHANGED <<lease, tst, ht, cn, led, at, rc, t2h>>

Reshut ==
  /\ hst = "shutting" /\ h2t = <<>>
  /\ h2t' = Append(h2t, SHUT)
  /\ UNCHANGED <<hst, lease, tst, ht, cn, led, at, rc, t2h>>

Abort ==
  /\ hst # "aborted" /\ Len(h2t) < C
  /\ hst' = "aborted" /\ h2t' = Append(h2t, ABORT)
  /\ UNCHANGED <<lease, tst, ht, cn, led, at, rc, t2h>>

Reabort ==
  /\ hst = "aborted" /\ h2t = <<>>
  /\ h2t' = Append(h2t, ABORT)
  /\ UNCHANGED <<hst, lease, tst, ht, cn, led, at, rc, t2h>>

LeaseExpire ==
  /\ lease /\ \A t \in Tasks, r \in Receivers : rc[t][r] # "downloading"
  /\ lease' = FALSE
  /\ ht' = [t \in Tasks |-> IF ht[t] = "sent" THEN "idle" ELSE ht[t]]
  /\ UNCHANGED <<hst, tst, cn, led, at, rc, h2t, t2h>>

LeaseRenew ==
  /\ ~lease /\ hst # "aborted"
  /\ lease' = TRUE
  /\ UNCHANGED <<hst, tst, ht, cn, led, at, rc, h2t, t2h>>

HostDrop ==
  /\ t2h # <<>> /\ hst = "aborted"
  /\ t2h' = Tail(t2h)
  /\ UNCHANGED <<hst, lease, tst, ht, cn, led, at, rc, h2t>>

HostResult ==
  /\ t2h # <<>> /\ hst # "aborted" /\ Len(h2t) < C
  /\ LET m == Head(t2h) IN
       /\ m.k = "RESULT"
       /\ IF ht[m.t] # "done"
            THEN /\ ht' = [ht EXCEPT ![m.t] = "done"]
                 /\ cn' = [cn EXCEPT ![m.t] = m.a]
            ELSE UNCHANGED <<ht, cn>>
       /\ t2h' = Tail(t2h)
       /\ h2t' = Append(h2t, ACC(m.t, cn'[m.t]))
  /\ UNCHANGED <<hst, lease, tst, led, at, rc>>

HostStatus ==
  /\ t2h # <<>> /\ hst # "aborted" /\ Len(h2t) < C
  /\ LET m == Head(t2h) IN
       /\ m.k = "STATUS"
       /\ t2h' = Tail(t2h)
       /\ h2t' = Append(h2t, ACC(m.t, cn[m.t]))
  /\ UNCHANGED <<hst, lease, tst, ht, cn, led, at, rc>>

HostRel(t) ==
  /\ hst # "aborted" /\ ht[t] = "done" /\ h2t = <<>>
  /\ \A r \in Receivers : rc[t][r] = "settled"
  /\ h2t' = Append(h2t, REL(t))
  /\ UNCHANGED <<hst, lease, tst, ht, cn, led, at, rc, t2h>>

\* ------------------------------------------------------------- network
LoseH == /\ h2t # <<>> /\ h2t' = Tail(h2t)
         /\ UNCHANGED <<hst, lease, tst, ht, cn, led, at, rc, t2h>>
LoseT == /\ t2h # <<>> /\ t2h' = Tail(t2h)
         /\ UNCHANGED <<hst, lease, tst, ht, cn, led, at, rc, h2t>>
DupH  == /\ h2t # <<>> /\ Len(h2t) < C /\ h2t' = Append(h2t, Head(h2t))
         /\ UNCHANGED <<hst, lease, tst, ht, cn, led, at, rc, t2h>>
DupT  == /\ t2h # <<>> /\ Len(t2h) < C /\ t2h' = Append(t2h, Head(t2h))
         /\ UNCHANGED <<hst, lease, tst, ht, cn, led, at, rc, h2t>>

\* ------------------------------------------------------------- trainer
RecvTask ==
  /\ h2t # <<>>
  /\ LET m == Head(h2t) IN
       /\ m.k = "TASK"
       /\ led' = IF tst = "run" /\ led[m.t] = "none" THEN [led EXCEPT ![m.t] = "running"] ELSE led
  /\ h2t' = Tail(h2t)
  /\ UNCHANGED <<hst, lease, tst, ht, cn, at, rc, t2h>>

RecvAcc ==
  /\ h2t # <<>>
  /\ LET m == Head(h2t) IN
       /\ m.k = "ACC"
       /\ led' = IF m.a = 0 /\ led[m.t] = "waiting" THEN [led EXCEPT ![m.t] = "running"]
                 ELSE IF m.a > 0 /\ led[m.t] \in {"running", "waiting"} THEN [led EXCEPT ![m.t] = "acked"]
                 ELSE led
  /\ h2t' = Tail(h2t)
  /\ UNCHANGED <<hst, lease, tst, ht, cn, at, rc, t2h>>

RecvRel ==
  /\ h2t # <<>>
  /\ LET m == Head(h2t) IN
       /\ m.k = "REL"
       /\ led' = IF led[m.t] \in {"running", "waiting", "acked"} THEN [led EXCEPT ![m.t] = "released"] ELSE led
  /\ h2t' = Tail(h2t)
  /\ UNCHANGED <<hst, lease, tst, ht, cn, at, rc, t2h>>

RecvShut ==
  /\ h2t # <<>> /\ Head(h2t).k = "SHUT"
  /\ tst' = IF tst = "run" THEN "drain" ELSE tst
  /\ h2t' = Tail(h2t)
  /\ UNCHANGED <<hst, lease, ht, cn, led, at, rc, t2h>>

RecvAbort ==
  /\ h2t # <<>> /\ Head(h2t).k = "ABORT"
  /\ tst' = "dead"
  /\ led' = [t \in Tasks |-> "none"] /\ at' = [t \in Tasks |-> 0]
  /\ h2t' = Tail(h2t)
  /\ UNCHANGED <<hst, lease, ht, cn, rc, t2h>>

Publish(t) ==
  /\ tst # "dead" /\ led[t] = "running" /\ Len(t2h) < C
  /\ at' = [at EXCEPT ![t] = Min(@ + 1, A)]
  /\ led' = [led EXCEPT ![t] = "waiting"]
  /\ t2h' = Append(t2h, RESULT(t, at'[t]))
  /\ UNCHANGED <<hst, lease, tst, ht, cn, rc, h2t>>

Status(t) ==
  /\ led[t] = "waiting" /\ Len(t2h) < C
  /\ t2h' = Append(t2h, STATUS(t))
  /\ UNCHANGED <<hst, lease, tst, ht, cn, led, at, rc, h2t>>

\* ----------------------------------------------------------- receivers
RStart(t, r) ==
  /\ hst # "aborted" /\ cn[t] > 0 /\ lease /\ rc[t][r] = "idle"
  /\ rc' = [rc EXCEPT ![t][r] = "downloading"]
  /\ UNCHANGED <<hst, lease, tst, ht, cn, led, at, h2t, t2h>>
RFinish(t, r) ==
  /\ hst # "aborted" /\ rc[t][r] = "downloading"
  /\ rc' = [rc EXCEPT ![t][r] = "downloaded"]
  /\ UNCHANGED <<hst, lease, tst, ht, cn, led, at, h2t, t2h>>
RSettle(t, r) ==
  /\ rc[t][r] = "downloaded"
  /\ rc' = [rc EXCEPT ![t][r] = "settled"]
  /\ UNCHANGED <<hst, lease, tst, ht, cn, led, at, h2t, t2h>>
RFail(t, r) ==
  /\ rc[t][r] = "downloading"
  /\ rc' = [rc EXCEPT ![t][r] = "idle"]
  /\ UNCHANGED <<hst, lease, tst, ht, cn, led, at, h2t, t2h>>

Next ==
  \/ \E t \in Tasks : SendTask(t) \/ ResendTask(t) \/ HostRel(t) \/ Publish(t) \/ Status(t)
  \/ Shutdown \/ Reshut \/ Abort \/ Reabort \/ LeaseExpire \/ LeaseRenew
  \/ HostDrop \/ HostResult \/ HostStatus
  \/ LoseH \/ LoseT \/ DupH \/ DupT
  \/ RecvTask \/ RecvAcc \/ RecvRel \/ RecvShut \/ RecvAbort
  \/ \E t \in Tasks, r \in Receivers : RStart(t, r) \/ RFinish(t, r) \/ RSettle(t, r) \/ RFail(t, r)

Spec == Init /\ [][Next]_vars

OneCanonical == \A i \in 1..Len(h2t) : h2t[i].k = "ACC" /\ h2t[i].a > 0 => h2t[i].a = cn[h2t[i].t]
SourceLive ==
  hst # "aborted" =>
    \A t \in Tasks : cn[t] # 0 /\ (\E r \in Receivers : rc[t][r] # "settled")
                       => led[t] \in {"running", "waiting", "acked"}
NoAdmissionAfterAbort == tst = "dead" => \A t \in Tasks : led[t] = "none"
=============================================================================
