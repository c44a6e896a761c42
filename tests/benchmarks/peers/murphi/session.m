-- Benchmark protocol "session": models/worlds/bench/session.py says the same.
-- Sizes come from the run script (sed on the four constants).
const
  T: 2; R: 1; A: 2; C: 2;
type
  task: 1..T;
  recv: 1..R;
  hstT: enum {Open, Shutting, Aborted};
  tstT: enum {Run, Drain, Dead};
  htT: enum {HIdle, HSent, HDone};
  ledT: enum {LNone, LRunning, LWaiting, LAcked, LReleased};
  rcT: enum {RIdle, RDownloading, RDownloaded, RSettled};
  kindT: enum {KNone, KTask, KAcc, KRel, KShut, KAbort, KResult, KStatus};
  msg: record k: kindT; t: 0..T; a: 0..A; end;
  slot: 1..C;
  queue: record n: 0..C; q: array [slot] of msg; end;
var
  hst: hstT;
  lease: boolean;
  tst: tstT;
  ht: array [task] of htT;
  cn: array [task] of 0..A;
  led: array [task] of ledT;
  at: array [task] of 0..A;
  rc: array [task] of array [recv] of rcT;
  h2t: queue;
  t2h: queue;

procedure push(var c: queue; k: kindT; t: 0..T; a: 0..A);
begin
  c.n := c.n + 1;
  c.q[c.n].k := k; c.q[c.n].t := t; c.q[c.n].a := a;
end;

procedure pop(var c: queue);
begin
  for i: 1..C-1 do
    c.q[i] := c.q[i+1];
  end;
  c.q[C].k := KNone; c.q[C].t := 0; c.q[C].a := 0;
  c.n := c.n - 1;
end;

startstate begin
  hst := Open; lease := true; tst := Run;
  for t: task do
    ht[t] := HIdle; cn[t] := 0; led[t] := LNone; at[t] := 0;
    for r: recv do rc[t][r] := RIdle; end;
  end;
  h2t.n := 0; t2h.n := 0;
  for i: slot do
    h2t.q[i].k := KNone; h2t.q[i].t := 0; h2t.q[i].a := 0;
    t2h.q[i].k := KNone; t2h.q[i].t := 0; t2h.q[i].a := 0;
  end;
end;

-- host
ruleset t: task do
  rule "SendTask" hst = Open & lease & ht[t] = HIdle & h2t.n < C &
       (t = 1 ? true : ht[t - 1] != HIdle) ==>
  begin ht[t] := HSent; push(h2t, KTask, t, 0); end;

  rule "ResendTask" hst = Open & lease & ht[t] = HSent & h2t.n = 0 ==>
  begin push(h2t, KTask, t, 0); end;

  rule "HostRel" hst != Aborted & ht[t] = HDone & h2t.n = 0 &
       (forall r: recv do rc[t][r] = RSettled endforall) ==>
  begin push(h2t, KRel, t, 0); end;

  rule "Publish" tst != Dead & led[t] = LRunning & t2h.n < C ==>
  begin
    if at[t] < A then at[t] := at[t] + 1; end;
    led[t] := LWaiting;
    push(t2h, KResult, t, at[t]);
  end;

  rule "Status" led[t] = LWaiting & t2h.n < C ==>
  begin push(t2h, KStatus, t, 0); end;
end;

rule "Shutdown" hst = Open & h2t.n < C ==> begin hst := Shutting; push(h2t, KShut, 0, 0); end;
rule "Reshut" hst = Shutting & h2t.n = 0 ==> begin push(h2t, KShut, 0, 0); end;
rule "Abort" hst != Aborted & h2t.n < C ==> begin hst := Aborted; push(h2t, KAbort, 0, 0); end;
rule "Reabort" hst = Aborted & h2t.n = 0 ==> begin push(h2t, KAbort, 0, 0); end;

rule "LeaseExpire" lease & (forall t: task do forall r: recv do rc[t][r] != RDownloading endforall endforall) ==>
begin
  lease := false;
  for t: task do if ht[t] = HSent then ht[t] := HIdle; end; end;
end;
rule "LeaseRenew" !lease & hst != Aborted ==> begin lease := true; end;

rule "HostDrop" t2h.n > 0 & hst = Aborted ==> begin pop(t2h); end;
rule "HostResult" t2h.n > 0 & hst != Aborted & h2t.n < C & t2h.q[1].k = KResult ==>
begin
  alias m: t2h.q[1] do
    if ht[m.t] != HDone then ht[m.t] := HDone; cn[m.t] := m.a; end;
    push(h2t, KAcc, m.t, cn[m.t]);
  end;
  pop(t2h);
end;
rule "HostStatus" t2h.n > 0 & hst != Aborted & h2t.n < C & t2h.q[1].k = KStatus ==>
begin
  push(h2t, KAcc, t2h.q[1].t, cn[t2h.q[1].t]);
  pop(t2h);
end;

-- network
rule "LoseH" h2t.n > 0 ==> begin pop(h2t); end;
rule "LoseT" t2h.n > 0 ==> begin pop(t2h); end;
rule "DupH" h2t.n > 0 & h2t.n < C ==> begin push(h2t, h2t.q[1].k, h2t.q[1].t, h2t.q[1].a); end;
rule "DupT" t2h.n > 0 & t2h.n < C ==> begin push(t2h, t2h.q[1].k, t2h.q[1].t, t2h.q[1].a); end;

-- trainer
rule "RecvTask" h2t.n > 0 & h2t.q[1].k = KTask ==>
begin
  if tst = Run & led[h2t.q[1].t] = LNone then led[h2t.q[1].t] := LRunning; end;
  pop(h2t);
end;
rule "RecvAcc" h2t.n > 0 & h2t.q[1].k = KAcc ==>
begin
  alias m: h2t.q[1] do
    if m.a = 0 & led[m.t] = LWaiting then led[m.t] := LRunning;
    elsif m.a > 0 & (led[m.t] = LRunning | led[m.t] = LWaiting) then led[m.t] := LAcked; end;
  end;
  pop(h2t);
end;
rule "RecvRel" h2t.n > 0 & h2t.q[1].k = KRel ==>
begin
  if led[h2t.q[1].t] != LNone then led[h2t.q[1].t] := LReleased; end;
  pop(h2t);
end;
rule "RecvShut" h2t.n > 0 & h2t.q[1].k = KShut ==>
begin if tst = Run then tst := Drain; end; pop(h2t); end;
rule "RecvAbort" h2t.n > 0 & h2t.q[1].k = KAbort ==>
begin
  tst := Dead;
  for t: task do led[t] := LNone; at[t] := 0; end;
  pop(h2t);
end;

-- receivers
ruleset t: task do ruleset r: recv do
  rule "RStart" hst != Aborted & cn[t] > 0 & lease & rc[t][r] = RIdle ==> begin rc[t][r] := RDownloading; end;
  rule "RFinish" hst != Aborted & rc[t][r] = RDownloading ==> begin rc[t][r] := RDownloaded; end;
  rule "RSettle" rc[t][r] = RDownloaded ==> begin rc[t][r] := RSettled; end;
  rule "RFail" rc[t][r] = RDownloading ==> begin rc[t][r] := RIdle; end;
end; end;

invariant "OneCanonical"
  forall i: slot do (h2t.q[i].k = KAcc & h2t.q[i].a > 0) -> h2t.q[i].a = cn[h2t.q[i].t] endforall;
invariant "SourceLive"
  hst != Aborted -> (forall t: task do
    (cn[t] != 0 & (exists r: recv do rc[t][r] != RSettled endexists)) ->
      (led[t] = LRunning | led[t] = LWaiting | led[t] = LAcked) endforall);
invariant "NoAdmissionAfterAbort"
  tst = Dead -> (forall t: task do led[t] = LNone endforall);
