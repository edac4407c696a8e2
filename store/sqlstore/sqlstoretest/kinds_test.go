package sqlstoretest

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
)

// The procedures for semaphores and read-write locks do what package rule says, step by
// step, also when the lock becomes a mutex and another kind again.
func TestKindsFollowTheRule(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		p := newProcedures(t, on, nil)
		for _, steps := range kindStories {
			if err := p.kinds(steps); err != nil {
				t.Error(err)
			}
		}
		steps := kindSteps(1, 20)
		rapid.Check(t, func(t *rapid.T) {
			if err := p.kinds(steps.Draw(t, "steps")); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// kindSpecs has the kinds of the steps. Most steps have the first.
var kindSpecs = [][]rule.Spec{
	{rule.Semaphore(3), rule.Mutex, rule.Semaphore(2), {Limit: 3, Shared: true}},
	{{Limit: 3, Shared: true}, rule.Mutex, rule.Semaphore(3)},
	{rule.Mutex, rule.Semaphore(2), rule.Semaphore(3)},
}

// kindStep is one call, or the passing of time. which and other choose kinds.
type kindStep struct {
	op             string
	specs          []rule.Spec
	owner          int
	which, other   int
	weight         int64
	spare          int
	attempt        string
	d              time.Duration
	barge, set, is bool
}

func kindSteps(least, most int) *rapid.Generator[[]kindStep] {
	ops := strings.Fields("try try wait wait wait wait look look release release release undo renew pass pass reserve downgrade downgrade resize resize break bury")
	return rapid.Custom(func(t *rapid.T) []kindStep {
		specs := rapid.SampledFrom(kindSpecs).Draw(t, "kinds")
		one := rapid.Custom(func(t *rapid.T) kindStep {
			return kindStep{
				op:      rapid.SampledFrom(ops).Draw(t, "op"),
				specs:   specs,
				owner:   rapid.IntRange(0, 4).Draw(t, "owner"),
				which:   max(0, rapid.IntRange(-8, len(specs)-1).Draw(t, "kind")),
				other:   rapid.IntRange(0, len(specs)-1).Draw(t, "other kind"),
				weight:  rapid.SampledFrom([]int64{1, 1, 1, 2, 3}).Draw(t, "weight"),
				spare:   rapid.SampledFrom([]int{0, 0, 1, 7}).Draw(t, "spare"),
				attempt: rapid.SampledFrom([]string{"", "", "", "i", "ii"}).Draw(t, "attempt"),
				d:       rapid.SampledFrom([]time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 20 * time.Second}).Draw(t, "time"),
				barge:   rapid.IntRange(0, 3).Draw(t, "barge") == 0,
				set:     rapid.Bool().Draw(t, "set"),
				is:      rapid.IntRange(0, 3).Draw(t, "is") > 0,
			}
		})
		return rapid.SliceOfN(one, least, most).Draw(t, "steps")
	})
}

// kindRun is a run of steps.
type kindRun struct {
	p   *procedures
	now clock.Instant
	r   rule.Record
	// asked is the kind of each owner's lease or place.
	asked map[string]rule.Spec
}

const kindLock = "kind"

// kinds takes the procedures and the rule through the steps, and returns the first
// difference.
func (p *procedures) kinds(steps []kindStep) error {
	const start = clock.Instant(1_790_000_000_000_000_000)
	if err := p.Begin(start); err != nil {
		return err
	}
	k := &kindRun{p: p, now: start, asked: map[string]rule.Spec{}}
	trace := ""
	for i, s := range steps {
		trace += fmt.Sprintf("%d. %+v\n", i, s)
		got, want, err := k.step(s)
		trace += fmt.Sprintf("   %s\n   the rule: %s\n", got, want)
		if err != nil {
			return fmt.Errorf("%s%w", trace, err)
		}
		if got != want {
			return fmt.Errorf("%sthe answers of the procedure and the rule differ", trace)
		}
		there, err := k.there(i%4 == 3)
		if err != nil {
			return fmt.Errorf("%s%w", trace, err)
		}
		if state := k.state(); there != state {
			return fmt.Errorf("%s   the rows: %s\n   the rule: %s", trace, there, state)
		}
	}
	return nil
}

func (k *kindRun) floor() fence.Token { return fence.Token(k.now / 1000) }

// step takes one step, and returns the answers of the procedure and of the rule.
func (k *kindRun) step(s kindStep) (got, want string, err error) {
	owner := fmt.Sprint("owner", s.owner)
	switch s.op {
	case "pass":
		k.now = k.now.Add(s.d)
		return "", "", k.p.Pass(s.d)
	case "try", "wait":
		return k.ask(s, owner)
	case "look":
		return k.look(s, owner)
	case "release", "undo", "bury":
		return k.release(s, owner)
	case "renew":
		var ans rule.Answer
		k.r, ans = rule.Renew(k.r, owner, s.d, k.now)
		done, err := k.either(owner, "renew", "held", func(row []string) bool { return row[0] != "f" },
			hex.EncodeToString([]byte(kindLock)), owner, fmt.Sprint(micros(s.d)), true)
		return fmt.Sprint(done), fmt.Sprint(ans.Verdict == rule.Done), err
	case "reserve":
		return k.reserve(s, owner)
	case "downgrade":
		var ans rule.Answer
		if k.r, ans = rule.Downgrade(k.r, owner, s.d, k.floor(), k.now); ans.Verdict == rule.Granted {
			k.r, _ = rule.Advance(k.r, k.floor(), k.now)
		}
		row, err := k.p.one("downgrade", "held, token, slot", []byte(kindLock), owner, micros(s.d), true)
		if err != nil {
			return "", "", err
		}
		want = fmt.Sprint(truth(ans.Verdict == rule.Granted), ans.Token, ans.Slot)
		return fmt.Sprint(truth(isTrue(row[0])), number(row[1]), number(row[2])), want, nil
	case "resize":
		from, to := s.specs[s.which], s.specs[s.other]
		if from.Shared || to.Shared {
			return "", "", nil
		}
		var ans rule.Answer
		k.r, ans = rule.Resize(k.r, from, to, k.now)
		row, err := k.p.one("resize", "verdict, lim, shared, owner", []byte(kindLock), from.Limit, to.Limit)
		if err != nil {
			return "", "", err
		}
		if want = "done"; ans.Verdict == rule.Mismatch {
			want = fmt.Sprint("mismatch ", ans.Spec, ans.Blocker.Owner)
		}
		if got = row[0]; got == "mismatch" {
			got = fmt.Sprint("mismatch ", rule.Spec{Limit: number(row[1]), Shared: isTrue(row[2])}, row[3])
		}
		return got, want, nil
	}
	return k.breaks(s, owner)
}

// truth formats a boolean, which the databases write in different ways.
func truth(b bool) string { return map[bool]string{true: "yes", false: "no"}[b] + " " }

func isTrue(text string) bool { return text == "true" || text == "t" || text == "1" }

// either calls the procedure for a mutex if the owner has asked for one. If that does not find the
// lease, it calls the procedure for other kinds.
func (k *kindRun) either(owner, name, columns string, found func([]string) bool, args ...any) (bool, error) {
	if spec, ok := k.asked[owner]; !ok || spec == rule.Mutex {
		mutexArgs := args
		if name == "release" {
			mutexArgs = append(slices.Clone(args), int64(0))
		}
		row, err := k.p.one(name, columns, mutexArgs...)
		if err != nil || found(row) {
			return err == nil, err
		}
	}
	row, err := k.p.one(name+"_kind", columns, args...)
	return err == nil && found(row), err
}

func (k *kindRun) ask(s kindStep, owner string) (got, want string, err error) {
	spec := s.specs[s.which]
	weight := min(s.weight, spec.Limit)
	wait, barge := s.op == "wait", s.op == "wait" && s.barge
	row, byKind := []string{"kind"}, true
	for row[0] == "kind" || row[0] == "mutex" {
		args := []any{[]byte(kindLock), owner, s.attempt, []byte("{}"), micros(s.d), int64(s.spare), wait, barge, true}
		if byKind = spec != rule.Mutex || row[0] == "kind" && len(row) > 1; byKind {
			row, err = k.p.one("ask_kind", "verdict, token, spare, ends_in, position, slot, owner, lim, shared", append(args, spec.Limit, spec.Shared, weight)...)
		} else {
			row, err = k.p.one("ask", "verdict, token, spare, ends_in, position", append(args, int64(0))...)
		}
		if err != nil {
			return "", "", err
		}
	}
	if !barge && (byKind || row[0] != "buried") { // the procedure for a mutex does not serve the queue first
		k.r, _ = rule.Advance(k.r, k.floor(), k.now)
	}
	ask := rule.Ask{Spec: spec, Owner: owner, Attempt: s.attempt, Meta: "{}", Weight: weight, TTL: s.d, Spare: s.spare, Floor: k.floor()}
	if wait {
		ask.Wait = s.d
	}
	ask.Fair = !barge && (wait || spec != rule.Mutex)
	var ans rule.Answer
	k.r, ans = rule.Admit(k.r, ask, k.now)
	if ans.Verdict == rule.Granted || ans.Verdict == rule.Busy && ans.Position > 0 {
		k.asked[owner] = spec
	}
	switch ans.Verdict {
	case rule.Granted:
		spare, text := ans.Spare, "granted"
		if ans.Again {
			text, spare = "again", int(number(row[2])) // the rule does not repeat the reserved tokens
		}
		want = fmt.Sprint(text, ans.Token, spare, ans.ExpiresIn)
		got = fmt.Sprint(row[0], number(row[1]), number(row[2]), span(row[3]))
		if byKind {
			want, got = fmt.Sprint(want, ans.Slot), fmt.Sprint(got, number(row[5]))
		}
		return got, want, nil
	case rule.Busy:
		want = fmt.Sprint("busy", ans.Position)
		got = fmt.Sprint(row[0], number(row[4]))
		if byKind {
			want, got = fmt.Sprint(want, ans.Blocker.Owner, ans.ExpiresIn), fmt.Sprint(got, row[6], span(row[3]))
		}
		return got, want, nil
	case rule.Buried:
		return row[0], "buried", nil
	case rule.Mismatch:
		// The tombstone of a mutex that was broken already exists, and comes first.
		if i := slices.IndexFunc(k.r.Holds, func(h rule.Hold) bool { return h.Owner == owner }); i >= 0 && k.r.Holds[i].Broken && ans.Spec == rule.Mutex {
			return row[0], "buried", nil
		}
		if ans.Spec == spec {
			return row[0], "smaller", nil
		}
		if !byKind {
			return row[0], "mismatch", nil
		}
		return fmt.Sprint(row[0], rule.Spec{Limit: number(row[7]), Shared: isTrue(row[8])}, row[6], span(row[3])),
			fmt.Sprint("mismatch", ans.Spec, ans.Blocker.Owner, ans.ExpiresIn), nil
	}
	return "", "", fmt.Errorf("the rule: %+v", ans)
}

// look takes the step of a waiter that looks whether it has the lock.
func (k *kindRun) look(s kindStep, owner string) (got, want string, err error) {
	if !slices.ContainsFunc(rule.Expire(k.r, k.now).Queue, func(p rule.Place) bool { return p.Owner == owner }) {
		return "", "", nil
	}
	before := len(k.r.Holds) + len(k.r.Queue)
	k.r, _ = rule.Advance(k.r, k.floor(), k.now)
	still := before == len(k.r.Holds)+len(k.r.Queue)
	row := []string{"gone"}
	if k.asked[owner] == rule.Mutex {
		row, err = k.p.one("await", "verdict, refreshed, position", []byte(kindLock), owner, micros(s.d), int64(0), int64(0))
	}
	if err == nil && row[0] == "gone" {
		row, err = k.p.one("await_kind", "verdict, refreshed, position", []byte(kindLock), owner, micros(s.d))
	}
	if err != nil {
		return "", "", err
	}
	refreshed := isTrue(row[1])
	want = "gone"
	if slices.ContainsFunc(k.r.Holds, func(h rule.Hold) bool { return h.Owner == owner }) {
		want = "again"
	}
	if i := slices.IndexFunc(k.r.Queue, func(p rule.Place) bool { return p.Owner == owner }); i >= 0 {
		want = "busy"
		if !refreshed && (!still || k.r.Queue[i].Expiry.Sub(k.now) <= s.d-s.d/8) {
			return row[0], "busy, and the place refreshed", nil
		}
		if refreshed {
			k.r.Queue = slices.Clone(k.r.Queue)
			k.r.Queue[i].Expiry = max(k.r.Queue[i].Expiry, k.now.Add(s.d))
		}
		if int(number(row[2])) != i+1 {
			return "position " + row[2], fmt.Sprint("position ", i+1), nil
		}
	}
	return row[0], want, nil
}

func (k *kindRun) release(s kindStep, owner string) (got, want string, err error) {
	tombstone := time.Duration(0)
	if s.op == "bury" {
		tombstone = s.d
	}
	var ans rule.Answer
	k.r, ans = rule.Release(k.r, rule.End{Owner: owner, Attempt: s.attempt, Undo: s.op == "undo", Tombstone: tombstone}, k.now)
	k.r, _ = rule.Advance(k.r, k.floor(), k.now)
	done, err := k.either(owner, "release", "done", func(row []string) bool { return isTrue(row[0]) },
		[]byte(kindLock), owner, s.attempt, s.op == "undo", micros(tombstone), false)
	return fmt.Sprint(done), fmt.Sprint(ans.Verdict == rule.Done), err
}

func (k *kindRun) reserve(s kindStep, owner string) (got, want string, err error) {
	r := rule.Expire(k.r, k.now)
	if i := slices.IndexFunc(r.Holds, func(h rule.Hold) bool { return h.Owner == owner }); i >= 0 && r.Spec.Shared && r.Holds[i].Weight < r.Spec.Limit {
		return "", "", nil // a reader reserves no tokens
	}
	var ans rule.Answer
	above := k.r.Token + fence.Token(s.spare)
	k.r, ans = rule.ReserveTokens(k.r, owner, s.spare, max(k.floor(), above+1), k.now)
	var row []string
	_, err = k.either(owner, "reserve", "held, token, count, waiting", func(r []string) bool {
		row = r
		return isTrue(r[0])
	}, []byte(kindLock), owner, int64(above), int64(s.spare+1), true)
	if err != nil || ans.Verdict != rule.Done {
		return fmt.Sprint(isTrue(row[0])), "false", err
	}
	return fmt.Sprint(isTrue(row[0]), number(row[1]), number(row[2]), isTrue(row[3])),
		fmt.Sprint(true, ans.Token, ans.Spare+1, len(k.r.Queue) > 0), nil
}

func (k *kindRun) breaks(s kindStep, owner string) (got, want string, err error) {
	token := fence.Token(1)
	if i := slices.IndexFunc(k.r.Holds, func(h rule.Hold) bool { return h.Owner == owner }); i >= 0 && s.is {
		token = k.r.Holds[i].Token
	} else if b := k.r.Broken; b != nil {
		owner, token = b.Owner, b.Token
	}
	var ans rule.Answer
	note := fmt.Sprint("note ", s.owner, s.d)
	k.r, ans = rule.BreakLease(k.r, rule.Break{Owner: owner, Token: token, Now: s.set, Note: note, Keep: time.Minute}, k.now)
	k.r, _ = rule.Advance(k.r, k.floor(), k.now)
	row, err := k.p.one("break_lease", "broke, left_in", []byte(kindLock), owner, int64(token), s.set, []byte(note), micros(time.Minute))
	if err != nil {
		return "", "", err
	}
	return fmt.Sprint(isTrue(row[0]), span(row[1])), fmt.Sprint(ans.Verdict == rule.Done, ans.ExpiresIn), nil
}
