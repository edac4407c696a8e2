package sqlstoretest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/proof/differential"
	"github.com/leasehold-dev/leasehold/internal/rule"
)

// batched are procedures that make each step in a batch, if the batch makes it.
type batched struct{ *procedures }

// The steps of batches do what package rule says, and so do the steps that a batch leaves, made
// alone.
func TestBatchesOfOneFollowTheRule(t *testing.T) {
	t.Parallel()
	differential.Check(t, batched{newProcedures(t, postgres, nil)})
}

// Do implements differential.Subject.
func (p batched) Do(c differential.Command) (differential.Answer, error) {
	var s batchStep
	switch c.Op {
	case differential.Acquire:
		s = batchStep{lock: c.Lock, owner: c.Owner.ID, meta: c.Owner.Meta, ttl: c.TTL}
	case differential.Release:
		s = batchStep{lock: c.Lock, owner: c.Owner.ID, release: true}
	default:
		return p.procedures.Do(c)
	}
	got, err := p.batch([]batchStep{s})
	if err != nil {
		return differential.Answer{}, err
	}
	switch r := got[0]; r.verdict {
	case "":
		return p.procedures.Do(c)
	case "released":
		return differential.Answer{Verdict: differential.Done}, nil
	case "granted":
		return differential.Answer{Verdict: differential.Done, Token: uint64(r.token)}, nil
	case "busy":
		return differential.Answer{Verdict: differential.Taken, Holder: r.owner, Left: r.left}, nil
	default:
		return differential.Answer{}, fmt.Errorf("verdict %q", r.verdict)
	}
}

// batchStep is a step of a batch.
type batchStep struct {
	lock, owner, meta string
	ttl               time.Duration
	release           bool
}

// batch makes a batch of steps, with releases first. A step that it leaves has no verdict.
func (p *procedures) batch(steps []batchStep) ([]reply, error) {
	var lists [7][]string
	for _, s := range steps {
		bytes := func(b string) string { return fmt.Sprintf(`\x%x`, b) }
		if s.release {
			lists[0], lists[1] = append(lists[0], bytes(s.lock)), append(lists[1], s.owner)
			continue
		}
		for i, item := range []string{bytes(s.lock), s.owner, bytes(s.meta), fmt.Sprint(micros(s.ttl)), "0"} {
			lists[2+i] = append(lists[2+i], item)
		}
	}
	var args []any
	for _, list := range lists {
		args = append(args, strings.Join(list, " "))
	}
	rows, err := p.call("batch", "step, verdict, owner, token, ends_in", append(args, true)...)
	all := make([]reply, len(steps))
	for _, row := range rows {
		one := &all[number(row[0])-1]
		if one.verdict != "" {
			return nil, fmt.Errorf("two answers to step %s: %v and %v", row[0], *one, row)
		}
		*one = reply{verdict: row[1], owner: row[2], token: number(row[3]), left: span(row[4])}
	}
	return all, err
}

// batchRound is a batch, and what happens before it.
type batchRound struct {
	steps []batchStep
	pass  time.Duration
	// Owner 0 gets a tombstone of the lock bury, and a place of the lock wait, after owner 1, which
	// barges, has one of the lock barge.
	bury, barge, wait string
}

func batchRounds(least, most int) *rapid.Generator[[]batchRound] {
	locks, owners := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), rapid.SampledFrom([]string{"o0", "o1", "o2"})
	maybe := rapid.Custom(func(t *rapid.T) string {
		if rapid.IntRange(0, 5).Draw(t, "rarely") > 0 {
			return ""
		}
		return locks.Draw(t, "lock")
	})
	one := rapid.Custom(func(t *rapid.T) (r batchRound) {
		r.pass = rapid.SampledFrom([]time.Duration{0, time.Microsecond, time.Second, 2 * time.Second, 5 * time.Second}).Draw(t, "pass")
		r.bury, r.barge, r.wait = maybe.Draw(t, "bury"), maybe.Draw(t, "barge"), maybe.Draw(t, "wait")
		for range rapid.IntRange(0, 5).Draw(t, "releases") {
			r.steps = append(r.steps, batchStep{lock: locks.Draw(t, "lock"), owner: owners.Draw(t, "owner"), release: true})
		}
		for range rapid.IntRange(0, 5).Draw(t, "requests") {
			r.steps = append(r.steps, batchStep{lock: locks.Draw(t, "lock"), owner: owners.Draw(t, "owner"), meta: "m",
				ttl: rapid.SampledFrom([]time.Duration{time.Second, 3 * time.Second, 20 * time.Second}).Draw(t, "ttl")})
		}
		return r
	})
	return rapid.SliceOfN(one, least, most)
}

// freeForAWaiter are rounds after which a lock is free and kept for a waiter that has not noticed.
var freeForAWaiter = []batchRound{
	{steps: []batchStep{{lock: "a", owner: "o2", ttl: 20 * time.Second}}},
	{barge: "a", wait: "a"},
	{steps: []batchStep{{lock: "a", owner: "o2", release: true}}},
	{pass: time.Second, steps: []batchStep{{lock: "a", owner: "o2", ttl: time.Second}}},
}

// Batches of many steps, some of the same lock, leave the rows that package rule would leave
// after some order of the steps that were made: of those of one lock, the steps that changed it
// come first.
func TestBatchesFollowTheRule(t *testing.T) {
	t.Parallel()
	p := newProcedures(t, postgres, nil)
	rounds := batchRounds(1, 15)
	made, err := p.batches(freeForAWaiter)
	if err != nil {
		t.Error(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		n, err := p.batches(rounds.Draw(t, "rounds"))
		if err != nil {
			t.Fatal(err)
		}
		made += n
	})
	if made == 0 {
		t.Error("no step was made in a batch, so the test shows nothing")
	}
}

// batches takes the procedures and the rule through the rounds, and returns the first difference.
// It counts the steps that were made in batches.
func (p *procedures) batches(rounds []batchRound) (made int, err error) {
	const start = clock.Instant(1_790_000_000_000_000_000)
	if err := p.Begin(start); err != nil {
		return 0, err
	}
	// A lock that is new is left to ask.
	for _, lock := range []string{"a", "b", "c", "d"} {
		if err := p.do(`INSERT INTO S.locks (name, token) VALUES (?, 0)`, []byte(lock)); err != nil {
			return 0, err
		}
	}
	now, records, trace := start, map[string]rule.Record{}, ""
	for _, r := range rounds {
		now = now.Add(r.pass)
		trace += fmt.Sprintf("%+v\n", r)
		if err := p.Pass(r.pass); err != nil {
			return made, err
		}
		if err := p.before(r, records, now); err != nil {
			return made, err
		}
		got, err := p.batch(r.steps)
		if err != nil {
			return made, fmt.Errorf("%s%w", trace, err)
		}
		for _, changes := range []bool{true, false} {
			for i, s := range r.steps {
				if got[i].verdict == "" || changes == (got[i].verdict == "busy") {
					continue
				}
				made++
				before := records[s.lock]
				var want rule.Answer
				if s.release {
					records[s.lock], want = rule.Release(before, rule.End{Owner: s.owner}, now)
					records[s.lock], _ = rule.Advance(records[s.lock], floorAt(now), now)
				} else {
					advanced, _ := rule.Advance(before, floorAt(now), now)
					records[s.lock], want = rule.Admit(advanced, rule.Ask{Spec: rule.Mutex, Owner: s.owner, TTL: s.ttl, Floor: floorAt(now)}, now)
				}
				same := false
				switch got[i].verdict {
				case "released":
					same = want.Verdict == rule.Done
				case "granted":
					same = want.Verdict == rule.Granted && !want.Again && got[i].token == int64(want.Token) && got[i].left == want.ExpiresIn
				case "busy":
					same = want.Verdict == rule.Busy && got[i].owner == want.Blocker.Owner && got[i].left == want.ExpiresIn
				}
				if !same {
					return made, fmt.Errorf("%s   step %d: %+v, the rule: %+v", trace, i+1, got[i], want)
				}
			}
		}
		if err := p.rest(r, got, records, now); err != nil {
			return made, fmt.Errorf("%s%w", trace, err)
		}
		for lock, record := range records {
			state, err := p.queueState(lock)
			if err != nil {
				return made, err
			}
			if want := ruleState(rule.Expire(record, now), now); state != want {
				return made, fmt.Errorf("%s   the rows of %s: %s, the rule: %s; answers %+v", trace, lock, state, want, got)
			}
		}
	}
	return made, nil
}

func floorAt(now clock.Instant) fence.Token { return fence.Token(now / 1000) }

// before makes the steps before a batch.
func (p *procedures) before(r batchRound, records map[string]rule.Record, now clock.Instant) error {
	const ttl = 3 * time.Second
	if r.bury != "" {
		if _, err := p.release(r.bury, "o0", ttl); err != nil {
			return err
		}
		record, _ := rule.Release(records[r.bury], rule.End{Owner: "o0", Tombstone: ttl}, now)
		records[r.bury], _ = rule.Advance(record, floorAt(now), now)
	}
	wait := func(lock, owner string, barge bool) error {
		if lock == "" {
			return nil
		}
		record := records[lock]
		if !barge {
			record, _ = rule.Advance(record, floorAt(now), now)
		}
		records[lock], _ = rule.Admit(record, rule.Ask{Spec: rule.Mutex, Owner: owner, TTL: ttl, Floor: floorAt(now), Fair: !barge, Wait: ttl}, now)
		_, err := p.ask(lock, owner, "", ttl, true, barge)
		return err
	}
	if err := wait(r.barge, "o1", true); err != nil {
		return err
	}
	return wait(r.wait, "o0", false)
}

// rest makes the releases that a batch left, alone.
func (p *procedures) rest(r batchRound, got []reply, records map[string]rule.Record, now clock.Instant) error {
	for i, s := range r.steps {
		if !s.release || got[i].verdict != "" {
			continue
		}
		done, err := p.release(s.lock, s.owner, 0)
		if err != nil {
			return err
		}
		record, want := rule.Release(records[s.lock], rule.End{Owner: s.owner}, now)
		records[s.lock], _ = rule.Advance(record, floorAt(now), now)
		if done != (want.Verdict == rule.Done) {
			return fmt.Errorf("step %d, made alone: %v, the rule: %+v", i+1, done, want)
		}
	}
	return nil
}

// batchMutants has mistakes in the procedure batch.
var batchMutants = []mutant{
	{"any owner releases", "AND l.owner OPERATOR(pg_catalog.=) s.owner AND", "AND l.owner IS NOT NULL AND"},
	{"a lease that is over is released", "s.owner AND l.ends OPERATOR(pg_catalog.>) batch.at AND NOT l.line\n    RETURNING s.n", "s.owner AND NOT l.line\n    RETURNING s.n"},
	{"a release forgets the queue", "batch.at AND NOT l.line\n    RETURNING", "batch.at\n    RETURNING"},
	{"a held lock is granted", "is_idle(l.owner, l.line, l.buried, l.waited, l.token, batch.at)", "is_idle(NULL, l.line, l.buried, l.waited, l.token, batch.at)"},
	{"a lock is granted past its queue", "is_idle(l.owner, l.line, l.buried, l.waited, l.token, batch.at)", "is_idle(l.owner, false, l.buried, l.waited, l.token, batch.at)"},
	{"a lock is granted past its tombstones", "is_idle(l.owner, l.line, l.buried, l.waited, l.token, batch.at)", "is_idle(l.owner, l.line, 0, l.waited, l.token, batch.at)"},
	{"a lock is granted with an old token", "is_idle(l.owner, l.line, l.buried, l.waited, l.token, batch.at)", "is_idle(l.owner, l.line, l.buried, l.waited, 0, batch.at)"},
	{"a lease lasts longer", "ends = batch.at OPERATOR(pg_catalog.+) s.ttl", "ends = batch.at OPERATOR(pg_catalog.+) s.ttl OPERATOR(pg_catalog.+) 1"},
	{"a grant answers another step", "OPERATOR(pg_catalog.+) s.n, 'granted'", "OPERATOR(pg_catalog.+) 1, 'granted'"},
	{"an owner is refused its own lock", "l.owner OPERATOR(pg_catalog.<>) s.owner AND l.owner", "l.owner"},
	{"a lease that is over is in the way", "<>) '' AND l.ends OPERATOR(pg_catalog.>) batch.at\n", "<>) ''\n"},
	{"a refusal forgets tombstones", "AND NOT l.line AND l.buried OPERATOR(pg_catalog.<=) batch.at;", "AND NOT l.line;"},
	{"a refusal answers another step", "OPERATOR(pg_catalog.+) s.n, 'busy'", "OPERATOR(pg_catalog.+) 1, 'busy'"},
}

func TestMutatedBatchesAreCaught(t *testing.T) {
	t.Parallel()
	rounds := batchRounds(10, 20)
	catch(t, postgres, batchMutants, func(p *procedures, n int) bool {
		if _, err := p.batches(freeForAWaiter); err != nil {
			return true
		}
		for seed := range n {
			if _, err := p.batches(rounds.Example(seed)); err != nil {
				return true
			}
		}
		return false
	})
}
