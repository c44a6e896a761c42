/* Benchmark protocol "session": models/worlds/bench/session.py says the same.
 * Sizes by -DT= -DR= -DA= -DC= on the spin command line.
 * One process per party; every step is one d_step, so each process always rests at its loop head
 * and the state space is that of the other models.
 * Scratch variables are `hidden` and so not part of the state. */
#ifndef T
#define T 2
#define R 1
#define A 2
#define C 2
#endif
#define Idle 0
#define Sent 1
#define Done 2
#define None 0
#define Running 1
#define Waiting 2
#define Acked 3
#define Released 4
#define Downloading 1
#define Downloaded 2
#define Settled 3

byte hst = 0;               /* 0 open 1 shutting 2 aborted */
bool lease = true;
byte tst = 0;               /* 0 run 1 drain 2 dead */
byte ht[T], cn[T], led[T], at[T];
byte rc[T*R];
chan h2t = [C] of { byte, byte, byte };
chan t2h = [C] of { byte, byte, byte };
#ifdef NOHIDDEN             /* BFS and multi-core pan refuse hidden variables: reset them instead */
byte k, t, a;
#define ZERO ; k = 0; t = 0; a = 0
#else
hidden byte k, t, a;
#define ZERO
#endif

#define kTASK 1
#define kACC 2
#define kREL 3
#define kSHUT 4
#define kABRT 5
#define kRESULT 6
#define kSTATUS 7

#if R == 1
#define ALLSET(j) (rc[j] == Settled)
#elif R == 2
#define ALLSET(j) (rc[2*(j)] == Settled && rc[2*(j)+1] == Settled)
#elif R == 3
#define ALLSET(j) (rc[3*(j)] == Settled && rc[3*(j)+1] == Settled && rc[3*(j)+2] == Settled)
#endif
#define NODL(n) (rc[n] != Downloading)
#if T*R == 1
#define NODOWNLOAD NODL(0)
#elif T*R == 2
#define NODOWNLOAD (NODL(0) && NODL(1))
#elif T*R == 4
#define NODOWNLOAD (NODL(0) && NODL(1) && NODL(2) && NODL(3))
#elif T*R == 3
#define NODOWNLOAD (NODL(0) && NODL(1) && NODL(2))
#endif

#if T == 1
#define UNSEND if :: ht[0] == Sent -> ht[0] = Idle :: else fi
#define WIPE led[0] = None; at[0] = 0
#else
#define UNSEND if :: ht[0] == Sent -> ht[0] = Idle :: else fi; if :: ht[1] == Sent -> ht[1] = Idle :: else fi
#define WIPE led[0] = None; at[0] = 0; led[1] = None; at[1] = 0
#endif

#define HOST_TASK(j, prev) \
  :: d_step { hst == 0 && lease && ht[j] == Idle && len(h2t) < C && (prev) -> ht[j] = Sent; h2t!kTASK,j,0 } \
  :: d_step { hst == 0 && lease && ht[j] == Sent && len(h2t) == 0 -> h2t!kTASK,j,0 } \
  :: d_step { hst != 2 && ht[j] == Done && len(h2t) == 0 && ALLSET(j) -> h2t!kREL,j,0 }

active proctype host() {
  do
  HOST_TASK(0, true)
#if T > 1
  HOST_TASK(1, ht[0] != Idle)
#endif
  :: d_step { hst == 0 && len(h2t) < C -> hst = 1; h2t!kSHUT,0,0 }
  :: d_step { hst == 1 && len(h2t) == 0 -> h2t!kSHUT,0,0 }
  :: d_step { hst != 2 && len(h2t) < C -> hst = 2; h2t!kABRT,0,0 }
  :: d_step { hst == 2 && len(h2t) == 0 -> h2t!kABRT,0,0 }
  :: d_step { lease && NODOWNLOAD -> lease = false; UNSEND }
  :: d_step { !lease && hst != 2 -> lease = true }
  :: d_step { len(t2h) > 0 && hst == 2 -> t2h?k,t,a ZERO }
  :: d_step { len(t2h) > 0 && hst != 2 && len(h2t) < C -> t2h?k,t,a;
       if :: k == kRESULT && ht[t] != Done -> ht[t] = Done; cn[t] = a :: else fi;
       h2t!kACC,t,cn[t] ZERO }
  od
}

active proctype net() {
  do
  :: d_step { len(h2t) > 0 -> h2t?k,t,a ZERO }
  :: d_step { len(t2h) > 0 -> t2h?k,t,a ZERO }
  :: d_step { len(h2t) > 0 && len(h2t) < C -> h2t?<k,t,a>; h2t!k,t,a ZERO }
  :: d_step { len(t2h) > 0 && len(t2h) < C -> t2h?<k,t,a>; t2h!k,t,a ZERO }
  od
}

#define TRAINER_TASK(j) \
  :: d_step { tst != 2 && led[j] == Running && len(t2h) < C -> \
       if :: at[j] < A -> at[j]++ :: else fi; led[j] = Waiting; t2h!kRESULT,j,at[j] } \
  :: d_step { led[j] == Waiting && len(t2h) < C -> t2h!kSTATUS,j,0 }

active proctype trainer() {
  do
  TRAINER_TASK(0)
#if T > 1
  TRAINER_TASK(1)
#endif
  :: d_step { len(h2t) > 0 -> h2t?k,t,a;
       if
       :: k == kTASK -> if :: tst == 0 && led[t] == None -> led[t] = Running :: else fi
       :: k == kACC ->
            if :: a == 0 && led[t] == Waiting -> led[t] = Running
               :: a > 0 && (led[t] == Running || led[t] == Waiting) -> led[t] = Acked
               :: else fi
       :: k == kREL -> if :: led[t] != None -> led[t] = Released :: else fi
       :: k == kSHUT -> if :: tst == 0 -> tst = 1 :: else fi
       :: k == kABRT -> tst = 2; WIPE
       fi ZERO }
  od
}

#define RECV(n, j) \
  :: d_step { hst != 2 && cn[j] > 0 && lease && rc[n] == Idle -> rc[n] = Downloading } \
  :: d_step { hst != 2 && rc[n] == Downloading -> rc[n] = Downloaded } \
  :: d_step { rc[n] == Downloaded -> rc[n] = Settled } \
  :: d_step { rc[n] == Downloading -> rc[n] = Idle }

active [R] proctype receiver() {
  do
#if R == 1
  RECV(0, 0)
#if T > 1
  RECV(1, 1)
#endif
#else
  RECV(_pid - 3, 0)
#if T > 1
  RECV(R + _pid - 3, 1)
#endif
#endif
  od
}

/* invariants: a never-claim-free monitor would add states, so they are asserted through a safety
 * never claim only when NOCLAIM is not given (the claim has one state: counts stay the same). */
#define BAD2(j) (hst != 2 && cn[j] != 0 && !ALLSET(j) && (led[j] < Running || led[j] > Acked))
#define BAD3(j) (tst == 2 && led[j] != None)
#define ACCBAD(j, v) (h2t??[kACC,j,v] && cn[j] != v)
#if A == 1
#define BAD1(j) ACCBAD(j,1)
#elif A == 2
#define BAD1(j) (ACCBAD(j,1) || ACCBAD(j,2))
#else
#define BAD1(j) (ACCBAD(j,1) || ACCBAD(j,2) || ACCBAD(j,3))
#endif
#if T > 1
#define BAD (BAD1(0) || BAD1(1) || BAD2(0) || BAD2(1) || BAD3(0) || BAD3(1))
#else
#define BAD (BAD1(0) || BAD2(0) || BAD3(0))
#endif
#ifndef NOCLAIM
never { do :: BAD -> break :: else od }
#endif
