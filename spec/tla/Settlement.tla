---------------------------- MODULE Settlement ----------------------------
(***************************************************************************)
(* How a task is admitted and its result is settled, between a host and    *)
(* one trainer, in one session.                                            *)
(*                                                                         *)
(* A host gives a trainer tasks, one at a time.  The trainer runs each at  *)
(* most once and publishes a result.  The result may be large: then it     *)
(* stays with the trainer, its *source*, until every receiver has fetched  *)
(* it.  In the meantime the host may cancel the task, order the trainer to *)
(* shut down or to abort, or die, and so may the trainer; and every        *)
(* message may be lost, repeated or late.                                  *)
(*                                                                         *)
(* There are no messages here.  What one side may conclude from what it    *)
(* hears is written as what must be true of the other side, now and for    *)
(* ever after, for it to have been said at any time.  "The trainer may     *)
(* believe that its result was accepted" needs the host to have accepted   *)
(* it, however late the news.  This makes the module short, and makes it   *)
(* say what the messages are *for*.                                        *)
(*                                                                         *)
(* Five things are said in it.                                             *)
(*                                                                         *)
(*   ADMISSION   A task is taken in once, in the order of the tasks; what  *)
(*               was passed or given up is never taken in afterwards.      *)
(*   CANON       One attempt at a result is the canonical one, for ever;   *)
(*               and never one that the host had promised not to take.     *)
(*   LIVENESS    While an accepted result is not with all its receivers,   *)
(*     OF THE    its trainer serves it; it is lost only when that is no    *)
(*     SOURCE    longer possible, or given up by the host itself.          *)
(*   DOMINANCE   ABORT ends everything at the trainer in one step.  It     *)
(*               beats an orderly end; the first verdict stays otherwise.  *)
(*   DEFERRAL    SHUTDOWN does not end a result that is under way: the     *)
(*               trainer drains, and is closed by its last result.         *)
(*                                                                         *)
(* The state machines of Troth are checked to implement this module: the   *)
(* exported world of a trainer and a host instantiates it, with a mapping  *)
(* from their states to the variables below.  What is checked so is Safety *)
(* alone: an exported world has no fairness, so nothing in it must happen. *)
(* That it does is checked of the worlds themselves, under their own.      *)
(***************************************************************************)
EXTENDS Naturals

CONSTANTS
  Tasks,      \* the tasks of the session: its sequence numbers, 1 .. N
  Receivers,  \* who fetches each result; {} if results ride in their messages
  Attempts    \* how often a result is published, at most

ASSUME /\ Tasks \subseteq Nat \ {0}
       /\ Attempts \in Nat \ {0}

VARIABLES
  host,       \* where the host's session is
  trainer,    \* where the trainer's is
  verdict,    \* how the trainer's session ended
  task,       \* for each task, what the trainer's ledger says of it
  word,       \* for each task, what the trainer knows of its result
  source,     \* for each task, the receivers for whom the trainer keeps it
  decision,   \* for each task, what the host decided about its result
  canonical,  \* for each task, the attempt that the host took; 0: none
  fenced,     \* for each task, attempts up to this one will not be taken
  holders     \* for each task, the receivers who hold its whole result

trainerVars == <<trainer, verdict, task, word, source>>
hostVars    == <<host, decision, canonical, fenced>>
vars        == <<trainerVars, hostVars, holders>>

-----------------------------------------------------------------------------
(* The words that the variables speak in.                                  *)

HostStates    == {"out", "in", "draining", "aborting", "over", "dead"}
TrainerStates == {"out", "in", "draining", "aborted", "closed", "dead"}
Verdicts      == {"none", "stopped", "aborted", "lost"}

TaskStates == {"absent",      \* never heard of, or failed and may come again
               "coming",      \* reserved: its payload is on the way
               "queued",      \* taken in; nobody runs it yet
               "held",        \* the user runs it
               "publishing",  \* its result is out
               "complete",    \* and over
               "gone"}        \* cancelled, fenced or passed: never again

Words == {"none", "open",     \* published, and no answer yet
          "accepted",         \* accepted, and still being fetched
          "settling",         \* all receivers are done; the host is told
          "settled", "rejected", "cancelled"}

Decisions == {"none", "awaited",
              "accepted",     \* taken; its source is still needed
              "safe",         \* taken, and with everybody who needs it
              "settled", "lost", "retired", "rejected"}

Unpublished == {"coming", "queued", "held"}
Busy        == {"open", "accepted", "settling"}
Taken       == {"accepted", "safe", "settled", "lost", "retired"}
Over        == {"settled", "lost", "retired", "rejected"}
Bound       == {"in", "draining"}
Ended       == {"aborted", "closed", "dead"}

TypeOK ==
  /\ host \in HostStates
  /\ trainer \in TrainerStates
  /\ verdict \in Verdicts
  /\ task \in [Tasks -> TaskStates]
  /\ word \in [Tasks -> Words]
  /\ source \in [Tasks -> SUBSET Receivers]
  /\ decision \in [Tasks -> Decisions]
  /\ canonical \in [Tasks -> 0 .. Attempts]
  /\ fenced \in [Tasks -> 0 .. Attempts]
  /\ holders \in [Tasks -> SUBSET Receivers]

Init ==
  /\ host = "out" /\ trainer = "out" /\ verdict = "none"
  /\ task = [t \in Tasks |-> "absent"]
  /\ word = [t \in Tasks |-> "none"]
  /\ source = [t \in Tasks |-> {}]
  /\ decision = [t \in Tasks |-> "none"]
  /\ canonical = [t \in Tasks |-> 0]
  /\ fenced = [t \in Tasks |-> 0]
  /\ holders = [t \in Tasks |-> {}]

-----------------------------------------------------------------------------
(* ADMISSION.  The host offers a task when nothing else is awaited.  The   *)
(* trainer reserves it, which ends the second chance of every older one,   *)
(* and queues it when its payload is there: at once, if that is small.     *)

Offer(t) ==
  /\ host = "in"
  /\ decision[t] = "none"
  /\ \A u \in Tasks : /\ u < t => decision[u] # "none"
                      /\ decision[u] # "awaited"
  /\ decision' = [decision EXCEPT ![t] = "awaited"]
  /\ UNCHANGED <<host, canonical, fenced, trainerVars, holders>>

Passed(t) == \E u \in Tasks : u > t /\ decision[u] # "none"

Reserve(t) ==
  /\ trainer = "in"
  /\ task[t] = "absent"
  /\ decision[t] # "none"
  /\ \A u \in Tasks : u > t => task[u] = "absent"
  /\ \E taken \in {"coming", "queued"} :
       task' = [u \in Tasks |->
         IF u = t THEN taken
         ELSE IF u < t /\ task[u] \in Unpublished \cup {"absent"} THEN "gone"
         ELSE task[u]]
  /\ UNCHANGED <<trainer, verdict, word, source, hostVars, holders>>

Move(t, from, to) ==
  /\ trainer \in Bound
  /\ task[t] = from
  /\ task' = [task EXCEPT ![t] = to]
  /\ UNCHANGED <<trainer, verdict, word, source, hostVars, holders>>

Queue(t)  == trainer = "in" /\ Move(t, "coming", "queued")
Miss(t)   == Move(t, "coming", "absent")     \* the payload did not come
Take(t)   == trainer = "in" /\ Move(t, "queued", "held")

-----------------------------------------------------------------------------
(* CANON.  A result is published, and asked about when no answer comes.    *)
(* "Unknown" is a promise: the attempts so far will not be taken any more. *)
(* So another one may be sent, and only one can ever be the canonical one. *)

Publish(t) ==
  /\ trainer = "in"
  /\ task[t] = "held"
  /\ task' = [task EXCEPT ![t] = "publishing"]
  /\ word' = [word EXCEPT ![t] = "open"]
  /\ source' = [source EXCEPT ![t] = Receivers]
  /\ UNCHANGED <<trainer, verdict, hostVars, holders>>

WasPublished(t) ==  \* the dead do not say what they did
  task[t] \in {"publishing", "complete", "gone"} \/ trainer = "dead"

Promise(t) ==
  /\ decision[t] = "awaited"
  /\ WasPublished(t)
  /\ \E a \in 1 .. Attempts : a > fenced[t] /\ fenced' = [fenced EXCEPT ![t] = a]
  /\ UNCHANGED <<host, decision, canonical, trainerVars, holders>>

Accept(t) ==
  /\ host \in Bound
  /\ decision[t] = "awaited"
  /\ WasPublished(t)
  /\ \E a \in 1 .. Attempts : /\ a > fenced[t]
                              /\ canonical' = [canonical EXCEPT ![t] = a]
  /\ decision' = [decision EXCEPT ![t] = IF Receivers = {} THEN "safe" ELSE "accepted"]
  /\ fenced' = [fenced EXCEPT ![t] = 0]  \* decided, so the promise has done its work
  /\ UNCHANGED <<host, trainerVars, holders>>

-----------------------------------------------------------------------------
(* DEATH.  What a process knew dies with it.  It may die in the middle of  *)
(* anything, so this is half of an action, to go with the other's half.    *)
(* A source that is let go tells the receivers, and one of them is in the *)
(* host's own process, which may be the last thing that it hears.         *)

DyingTrainer ==
  /\ trainer # "dead"
  /\ trainer' = "dead"
  /\ verdict' = "none"
  /\ task' = [t \in Tasks |-> "absent"]
  /\ word' = [t \in Tasks |-> "none"]
  /\ source' = [t \in Tasks |-> {}]

DyingHost ==  \* perhaps while it takes a result, which is lost with it
  /\ host # "dead"
  /\ host' = "dead"
  /\ \E late \in {{}} \cup {{t} : t \in {u \in Tasks : decision[u] = "awaited" /\ WasPublished(u)}} :
       /\ decision' = [t \in Tasks |-> IF decision[t] \in Taken \/ t \in late THEN "lost" ELSE "rejected"]
       /\ \E a \in 1 .. Attempts :
            /\ \A t \in late : a > fenced[t]
            /\ canonical' = [t \in Tasks |-> IF t \in late THEN a ELSE canonical[t]]
  /\ fenced' = [t \in Tasks |-> 0]

Told == (UNCHANGED hostVars \/ DyingHost) /\ UNCHANGED holders

-----------------------------------------------------------------------------
(* What the trainer hears ends its draining when no other result is busy.  *)
(* A trainer that was launched for one task closes after it, unordered.    *)

Rest(words) ==
  LET busy == \E t \in Tasks : words[t] \in Busy
  IN  IF busy THEN {trainer} ELSE IF trainer = "draining" THEN {"closed"} ELSE {trainer, "closed"}

Unfinished(t) == task[t] \in Unpublished

Hear(t, new, newTask) ==
  /\ trainer \in Bound
  /\ word' = [word EXCEPT ![t] = new]
  /\ trainer' \in Rest(word')
  /\ verdict' = IF trainer' = trainer THEN verdict ELSE "stopped"
  /\ task' = [u \in Tasks |->
       IF u = t THEN newTask
       ELSE IF trainer' # trainer /\ Unfinished(u) THEN "gone" ELSE task[u]]
  /\ source' = [source EXCEPT ![t] = {}]
  /\ Told

HearAccepted(t) ==
  /\ trainer \in Bound
  /\ word[t] = "open"
  /\ decision[t] \in Taken
  /\ word' = [word EXCEPT ![t] = IF source[t] = {} THEN "settling" ELSE "accepted"]
  /\ UNCHANGED <<trainer, verdict, task, source, hostVars, holders>>

HearRejected(t) ==
  /\ word[t] = "open"
  /\ decision[t] = "rejected"
  /\ Hear(t, "rejected", IF task[t] = "publishing" THEN "complete" ELSE task[t])

HearNoted(t) ==
  /\ word[t] = "settling"
  /\ decision[t] \in Over
  /\ Hear(t, "settled", IF task[t] = "publishing" THEN "complete" ELSE task[t])

-----------------------------------------------------------------------------
(* LIVENESS OF THE SOURCE.  A receiver fetches from the source, and says   *)
(* that it holds all; or it gives up.  Bytes that were served prove        *)
(* nothing.  When no receiver is left, the trainer tells the host how it   *)
(* went, and goes on telling it until that is noted.                       *)

Spend(left) ==  \* the trainer hears the last of these receivers
  /\ source' = [t \in Tasks |-> source[t] \ left[t]]
  /\ word' = [t \in Tasks |->
       IF word[t] = "accepted" /\ source'[t] = {} THEN "settling" ELSE word[t]]

Only(t, r) == [u \in Tasks |-> IF u = t THEN {r} ELSE {}]

Fetch(t, r) ==
  /\ r \in source[t]
  /\ r \notin holders[t]
  /\ decision[t] \in Taken
  /\ holders' = [holders EXCEPT ![t] = @ \cup {r}]
  /\ \/ Spend(Only(t, r)) /\ UNCHANGED <<trainer, verdict, task>>
     \/ UNCHANGED trainerVars              \* what it said is still on its way
     \/ DyingTrainer
  /\ \/ UNCHANGED hostVars
     \/ /\ decision[t] = "accepted"         \* the host itself was the only one
        /\ holders'[t] = Receivers
        /\ decision' = [decision EXCEPT ![t] = "safe"]
        /\ UNCHANGED <<host, canonical, fenced>>
     \/ DyingHost

Release(t, r) ==  \* it holds all, or has given up
  /\ r \in source[t]
  /\ Spend(Only(t, r))
  /\ UNCHANGED <<trainer, verdict, task, hostVars, holders>>

Settle(t) ==
  /\ \/ decision[t] = "accepted" /\ holders[t] = Receivers
     \/ decision[t] = "safe" /\ word[t] \notin {"open", "accepted"}
  /\ decision' = [decision EXCEPT ![t] = "settled"]
  /\ UNCHANGED <<host, canonical, fenced, trainerVars, holders>>

Unreachable(t) == \E r \in Receivers : r \notin holders[t] /\ r \notin source[t]

Lose(t) ==  \* the trainer says so, or is known to be dead
  /\ decision[t] = "accepted"
  /\ Unreachable(t)
  /\ decision' = [decision EXCEPT ![t] = "lost"]
  /\ UNCHANGED <<host, canonical, fenced, trainerVars, holders>>

-----------------------------------------------------------------------------
(* Giving up.  The host gives up a task by itself first, and only then     *)
(* tells the trainer, who drops it.  No other task is touched.             *)

(* Receivers are told too, and may leave the source at once.               *)

GivenUp(d) == IF d = "awaited" THEN "rejected" ELSE IF d = "accepted" THEN "retired" ELSE d

Leave ==
  \/ \E left \in [Tasks -> SUBSET Receivers] :
       /\ \A t \in Tasks : left[t] # {} => decision[t] = "accepted" /\ decision'[t] # "accepted"
       /\ Spend(left)
       /\ UNCHANGED <<trainer, verdict, task>>
  \/ DyingTrainer

Forsake(t) ==
  /\ decision[t] \in {"awaited", "accepted"}
  /\ decision' = [decision EXCEPT ![t] = GivenUp(@)]
  /\ fenced' = [fenced EXCEPT ![t] = 0]
  /\ Leave
  /\ UNCHANGED <<host, canonical, holders>>

CanDrop(t) ==
  \/ task[t] \in Unpublished \cup {"absent"} /\ (Passed(t) \/ decision[t] \in Over \cup {"safe"})
  \/ task[t] = "publishing" /\ decision[t] \in Over \cup {"safe"}

Drop(dropped) ==
  /\ trainer \in Bound \cup {"aborted"}  \* which stays to say so, and still hears
  /\ dropped # {}
  /\ \A t \in dropped : /\ CanDrop(t)
                         /\ \A u \in Tasks : u < t /\ task[u] \in Unpublished \cup {"absent"} => u \in dropped
  /\ word' = [t \in Tasks |-> IF t \in dropped /\ word[t] \in {"open", "accepted"} THEN "cancelled" ELSE word[t]]
  /\ source' = [t \in Tasks |-> IF word'[t] = "cancelled" THEN {} ELSE source[t]]
  /\ trainer' \in IF word' = word THEN {trainer} ELSE Rest(word')
  /\ verdict' = IF trainer' = trainer THEN verdict ELSE "stopped"
  /\ task' = [t \in Tasks |-> IF t \in dropped \/ (trainer' # trainer /\ Unfinished(t)) THEN "gone" ELSE task[t]]
  /\ Told

-----------------------------------------------------------------------------
(* The ends.  How the two sides meet is left out: either may find itself   *)
(* in the session at any time.                                             *)

HostJoins == host = "out" /\ host' = "in" /\ UNCHANGED <<decision, canonical, fenced, trainerVars, holders>>
HostStops == host = "in" /\ host' = "draining" /\ UNCHANGED <<decision, canonical, fenced, trainerVars, holders>>

HostAborts ==
  /\ host \in Bound
  /\ host' = "aborting"
  /\ decision' = [t \in Tasks |-> GivenUp(decision[t])]
  /\ fenced' = [t \in Tasks |-> 0]
  /\ Leave
  /\ UNCHANGED <<canonical, holders>>

HostEnds ==  \* in order, or because it believes the trainer lost
  /\ host \notin {"over", "dead"}
  /\ host' = "over"
  /\ \E unwanted \in SUBSET Tasks :  \* nobody has asked for these any more
       decision' = [t \in Tasks |->
         CASE decision[t] = "awaited"  -> "rejected"
           [] decision[t] = "accepted" -> IF t \in unwanted THEN "retired" ELSE "lost"
           [] decision[t] = "safe"     -> IF t \in unwanted THEN "safe" ELSE "settled"
           [] OTHER                    -> decision[t]]
  /\ fenced' = [t \in Tasks |-> 0]
  /\ Leave
  /\ UNCHANGED <<canonical, holders>>

HostDies == DyingHost /\ Leave /\ UNCHANGED holders

TrainerJoins == trainer = "out" /\ trainer' = "in" /\ UNCHANGED <<verdict, task, word, source, hostVars, holders>>

(* DEFERRAL.  The user's own shutdown() is like an order of the host.      *)

TrainerStops ==
  /\ trainer \in {"out", "in"}
  /\ trainer' = IF \E t \in Tasks : word[t] \in Busy THEN "draining" ELSE "closed"
  /\ verdict' = "stopped"
  /\ task' = [t \in Tasks |-> IF Unfinished(t) THEN "gone" ELSE task[t]]
  /\ UNCHANGED <<word, source, hostVars, holders>>

(* DOMINANCE.  Everything, in one step; only what has been settled stays.  *)

TrainerAborts(why) ==
  /\ trainer \in {"out", "in", "draining"}
  /\ trainer' = "aborted"
  /\ verdict' = why
  /\ task' = [t \in Tasks |-> IF Unfinished(t) \/ task[t] = "publishing" THEN "gone" ELSE task[t]]
  /\ word' = [t \in Tasks |-> CASE word[t] \in {"open", "accepted"} -> "cancelled"
                                [] word[t] = "settling"             -> "settled"
                                [] OTHER                            -> word[t]]
  /\ source' = [t \in Tasks |-> {}]
  /\ Told

HearAbort == host \in {"aborting", "over", "dead"} /\ TrainerAborts("aborted")
Expire    == TrainerAborts("lost")           \* the trainer believes the host lost

TrainerCloses ==
  /\ trainer = "aborted"
  /\ trainer' = "closed"
  /\ UNCHANGED <<verdict, task, word, source, hostVars, holders>>

TrainerDies == DyingTrainer /\ UNCHANGED <<hostVars, holders>>

-----------------------------------------------------------------------------
Next ==
  \/ \E t \in Tasks :
       \/ Offer(t) \/ Reserve(t) \/ Queue(t) \/ Miss(t) \/ Take(t)
       \/ Publish(t) \/ Promise(t) \/ Accept(t)
       \/ HearAccepted(t) \/ HearRejected(t) \/ HearNoted(t)
       \/ Settle(t) \/ Lose(t) \/ Forsake(t)
       \/ \E r \in Receivers : Fetch(t, r) \/ Release(t, r)
  \/ \E dropped \in SUBSET Tasks : Drop(dropped)
  \/ HostJoins \/ HostStops \/ HostAborts \/ HostEnds \/ HostDies
  \/ TrainerJoins \/ TrainerStops \/ HearAbort \/ Expire \/ TrainerCloses \/ TrainerDies

Safety == Init /\ [][Next]_vars

(* What is sent is sent again until it is answered, so an answer that can  *)
(* be heard is heard; a transfer ends, one way or the other; and a host    *)
(* that is ending does not wait for ever.  Nothing is assumed of users.    *)

Fairness ==
  /\ \A t \in Tasks :
       /\ WF_vars(HearAccepted(t)) /\ WF_vars(HearRejected(t)) /\ WF_vars(HearNoted(t))
       /\ WF_vars(Settle(t)) /\ WF_vars(Lose(t))
       /\ \A r \in Receivers : WF_vars(Release(t, r))
  /\ WF_vars(host \in {"draining", "aborting"} /\ HostEnds)
  /\ WF_vars(HearAbort)

Spec == Safety /\ Fairness

-----------------------------------------------------------------------------
(* What users rely on, in every state.                                     *)

AdmittedInOrder ==  \* nothing is taken in behind a later task
  \A t, u \in Tasks : t < u /\ task[u] # "absent" => task[t] \notin {"absent", "coming", "queued"}

AdmittedAsOffered == \A t \in Tasks : task[t] \in Unpublished => decision[t] # "none"

CanonicalIffTaken == \A t \in Tasks : (canonical[t] # 0) <=> (decision[t] \in Taken)

AcceptedIsTrue ==  \* what the trainer believes, the host has decided
  \A t \in Tasks : word[t] \in {"accepted", "settling", "settled"} => decision[t] \in Taken

SourceIsServed ==  \* as long as the trainer believes it accepted, nobody is forgotten
  \A t \in Tasks : word[t] = "accepted" => trainer \in Bound /\ source[t] # {}

SettledIsHeld == \A t \in Tasks : decision[t] \in {"safe", "settled"} => holders[t] = Receivers

AbortIsTotal ==
  trainer = "aborted" => \A t \in Tasks : word[t] \notin Busy /\ source[t] = {} /\ ~Unfinished(t)

DrainsForAReason == trainer = "draining" => \E t \in Tasks : word[t] \in Busy

VerdictIffEnded == (verdict # "none") => trainer \in {"draining", "aborted", "closed"}

(* What users rely on, in every step.                                      *)

AtMostOnce ==  \* a task that was taken in is not taken in again
  [][\A t \in Tasks : task[t] \notin {"absent", "coming"} /\ trainer' # "dead" => task'[t] \notin {"absent", "coming"}]_vars

GoneIsGone == [][\A t \in Tasks : task[t] = "gone" /\ trainer' # "dead" => task'[t] = "gone"]_vars

CanonicalForEver == [][\A t \in Tasks : canonical[t] # 0 => canonical'[t] = canonical[t]]_vars

PromiseKept == [][\A t \in Tasks : canonical'[t] # canonical[t] => canonical'[t] > fenced[t]]_vars

NotLostWhileServed ==  \* but for a host that ends, believing its trainer dead
  [][\A t \in Tasks : decision[t] = "accepted" /\ decision'[t] = "lost" => Unreachable(t) \/ host' \in {"over", "dead"}]_vars

FirstVerdictStays ==
  [][verdict # "none" /\ trainer' # "dead" =>
       \/ verdict' = verdict
       \/ trainer = "draining" /\ verdict = "stopped" /\ verdict' \in {"aborted", "lost"}]_vars

OrderSparesResults ==  \* SHUTDOWN ends no result
  [][host' = host /\ trainer = "in" /\ trainer' = "draining" => word' = word /\ source' = source]_vars

(* And in the end.                                                         *)

Decided(t)  == decision[t] \in Over \cup {"safe"}
AcceptedIsDecided == \A t \in Tasks : decision[t] = "accepted" ~> Decided(t)
SettlingIsNoted   == \A t \in Tasks : word[t] = "settling" ~> word[t] # "settling"
AbortIsHeard      == host = "aborting" ~> trainer \notin Bound

THEOREM Spec => []TypeOK
THEOREM Spec => []AdmittedInOrder /\ []AdmittedAsOffered
THEOREM Spec => []CanonicalIffTaken /\ []AcceptedIsTrue
THEOREM Spec => []SourceIsServed /\ []SettledIsHeld
THEOREM Spec => []AbortIsTotal /\ []DrainsForAReason /\ []VerdictIffEnded
THEOREM Spec => AtMostOnce /\ GoneIsGone /\ CanonicalForEver /\ PromiseKept
THEOREM Spec => NotLostWhileServed /\ FirstVerdictStays /\ OrderSparesResults
THEOREM Spec => AcceptedIsDecided /\ SettlingIsNoted /\ AbortIsHeard
=============================================================================
