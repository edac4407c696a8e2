package redisstore

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// A list of steps does what its steps do one after the other: the answers, the pushes and
// the keys are the same, whatever values the locks' keys have, and also if several steps are
// for the same lock.

func TestListEqualsStepsOnSimulatedRedis(t *testing.T) { checkLists(t, onSimulated(t)) }

func TestListEqualsStepsOnRedis(t *testing.T) { checkLists(t, onRedis(t)) }

// TestListOfSharesEqualsStepsOnSimulatedRedis does the same with locks that several can hold.
func TestListOfSharesEqualsStepsOnSimulatedRedis(t *testing.T) {
	checkListsFrom(t, onSimulated(t), shareSeeds, listSeeds/8)
}

func TestListOfSharesEqualsStepsOnRedis(t *testing.T) {
	checkListsFrom(t, onRedis(t), shareSeeds, listSeeds/8)
}

// From shareSeeds on, steps are for locks of several kinds.
const shareSeeds = 1 << 32

// listSeeds is enough for each of listChanges to be noticed several times over.
const listSeeds = 1200

func checkLists(t *testing.T, n *scripted) { checkListsFrom(t, n, 0, listSeeds) }

// checkListsFrom tries a number of seeds from the first one on.
func checkListsFrom(t *testing.T, n *scripted, first, seeds uint64) {
	e, seen := listening(t, n), map[string]int{}
	for seed := first; seed < first+seeds; seed++ {
		if off, err := e.bothWays(seed, seen); off != "" || err != nil {
			t.Fatalf("seed %d: %s%v", seed, off, err)
		}
	}
	if t.Log(seen); len(seen) < 12 {
		t.Errorf("%d kinds of answers came up, want at least 12", len(seen))
	}
}

// The comparison notices every mistake in how a list does its steps.
func TestListsChanged(t *testing.T) { noticesListChanges(t, script.Steps, listChanges, 0) }

func TestListsOfSharesChanged(t *testing.T) {
	noticesListChanges(t, script.ShareSteps, shareListChanges, shareSeeds)
}

// listChange is a mistake in a script of lists.
type listChange struct{ name, old, new string }

func noticesListChanges(t *testing.T, of *script.Script, changes []listChange, first uint64) {
	e := listening(t, onSimulated(t))
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			e.change = change{script: of, old: c.old, new: c.new}.made(t)
			for seed := first; seed < first+listSeeds; seed++ {
				if off, err := e.bothWays(seed, map[string]int{}); err != nil {
					t.Fatal(err)
				} else if off != "" {
					t.Logf("seed %d: %s", seed, off)
					return
				}
			}
			t.Error("the comparison does not notice the mistake")
		})
	}
}

var shareListChanges = []listChange{
	{"what an earlier step changed is not read again", "if not got or seen[key] then", "if not got then"},
	{"an acquire does not check the mark", "guarded and refusal or nil", "nil"},
	{"an acquire that need not check the mark does", "guarded and refusal or nil", "refusal"},
	{"a free lock is granted without the mark", "answer = not why and try(admitFirst", "answer = try(admitFirst"},
	{"a step does not know the mark", "guarded and text or nil", "nil"},
	{"a step that need not check the mark does", "guarded and text or nil", "text"},
	{"an error in an acquire fails all", "try(admit, wanted,", "admit(wanted,"},
	{"an error in a renewal fails all", "try(renewHold, key,", "renewHold(key,"},
	{"an error in a confirm fails all", "try(confirmHold, key,", "confirmHold(key,"},
	{"an error in a release fails all", "try(endHold, key,", "endHold(key,"},
	{"a renewal does not check the mark", "why = try(checkMembership, mark, print)", ""},
	{"a renewal with a damaged mark", "why = type(mark) == 'table' and mark", "why = nil"},
	{"a lock is deleted without a tombstone", "or life ~= '0' and always == '1' or", "or"},
	{"another owner's lock is deleted", " ~= string.sub(tombstone, #key + 9) then", " == nil then"},
	{"a free lock is granted although others wait", "if got[1] or got[3] or got[4] or", "if got[1] or got[3] or"},
	{"a free lock is granted despite its tombstone", "if got[1] or got[3] or got[4] or", "if got[1] or got[4] or"},
	{"a weight without as many slots is granted", "picked = string.match(slots, '%d.*') or weight == 1 and '0'", "picked = string.match(slots, '%d.*') or '0'"},
}

var listChanges = []listChange{
	{"what an earlier step changed is not read again", "local fresh = got and not seen[key]", "local fresh = got"},
	{"only renewals of several leases are not read again", "fresh = fresh and not seen[keys[k + i]]", ""},
	{"a lock is deleted after later steps for it", "if released > 0 then\n        -- uses delete", "if false then\n        -- uses delete"},
	{"a lock is deleted twice", "        released = 0\n", ""},
	{"a lock is not deleted", "simple = delete(released, keys, args, said) and simple\nend\nif time", "end\nif time"},
	{"a lock is deleted although others wait", "values[first] == args[a + 1] and not values[first + 1] then", "values[first] == args[a + 1] then"},
	{"another owner's lock is deleted", "(letter == 100 or letter == 68) and values[first] == args[a + 1]", "(letter == 100 or letter == 68) and values[first]"},
	{"a lock is deleted without a tombstone, or although another attempt has it", "elseif (letter == 100 or letter == 68) and values", "elseif words == 2 and values"},
	{"a grant to a new owner does not check the mark", "and not barred then", "then"},
	{"a new owner does not see its tombstone", "and not values[i + 1] and not barred", "and not barred"},
	{"a new owner does not see the counter", "local last, proposed = values[i]", "local last, proposed = nil"},
	{"an owner that is not new is taken for one", "local lasts = string.match(word, '^.(%d+)$')", "local lasts = string.match(word, '^.(%d+)')"},
	{"a grant has the place of another answer", "keys[released], args[released] = key, n", "keys[released], args[released] = key, n\n    said[n - 1] = 1"},
	{"the TTL of another request counts", "plain, ttl, barred, letter = word, lasts,", "plain, ttl, barred, letter = word, ttl or lasts,"},
	{"a token is not new", "(least and token > least or not last)", "true"},
	{"a held lock is overwritten", "try('SET', key, value, 'PX', ttl, 'NX')", "try('SET', key, value, 'PX', ttl)"},
	{"an answer other than 1 is lost", "if answer ~= 1 then\n    simple = false", "if answer ~= 1 then"},
	{"a plain request that is not granted does not see its lock", "values, first = ask('MGET', unpack(its)), 1", "values, first = {}, 1"},
	{"the reply to a list that was done has no clock", "if simple then\n    return time", "if simple then\n    return ''"},
	{"plain requests have the same lock", "lock = lock + 1", "lock = #keys"},
	{"a plain request has the lock of another", "its, from = {key, keys[k], keys[k + 1]}, 1", "its, from = keys, k"},
	{"an error in an acquire fails all", "try(acquire, read", "acquire(read"},
	{"an error in a release fails all", "try(release, ending,", "release(ending,"},
	{"an error in a confirm fails all", "try(confirm, key,", "confirm(key,"},
	{"an error in a heal fails all", "try(heal, key,", "heal(key,"},
	{"an error in a return fails all", "try(rejoin, ending,", "rejoin(ending,"},
	{"an acquire does not check the mark", "why = refusal or false", "why = false"},
	{"an acquire that need not check the mark does", "if guarded then\n      why = refusal or false\n    end", "why = refusal or false"},
	{"a release does not check the mark", "newStep(time, proposed, text, list.print, refusal))\n  elseif", "newStep(time, proposed, text, list.print, false))\n  elseif"},
	{"a release that need not check the mark does", "newStep(time, proposed, text, list.print, refusal))\n  elseif", "newStep(time, proposed, list.text, list.print, list.refusal))\n  elseif"},
	{"a release does not know the mark", "newStep(time, proposed, text, list.print, refusal))\n  elseif", "newStep(time, proposed, nil, list.print, refusal))\n  elseif"},
	{"a return does not check the mark", "newStep(time, proposed, text, list.print, refusal))\nend", "newStep(time, proposed, text, list.print, false))\nend"},
	{"a return does not know its place", "more[3], more[4]}", "nil, more[4]}"},
	{"a return does not know its tombstone", "more[3], more[4]}", "more[3], nil}"},
	{"a return does not know the counter", "{held, values[first + 2], more[1]", "{held, values[first + 2], nil"},
	{"a renewal does not check the mark", "why = type(text) == 'table' and text or try(checkMembership, text, list.print)", ""},
	{"a renewal with a damaged mark", "why = type(text) == 'table' and text or try(checkMembership, text, list.print)", "why = type(text) ~= 'table' and try(checkMembership, text, list.print)"},
	{"an acquire does not see its tombstone", "{held, values[first + 1], values[first + 2]}", "{held, values[first + 1]}"},
	{"an acquire does not see the counter", "{held, values[first + 1], values[first + 2]}", "{held, nil, values[first + 2]}"},
	{"a heal does not see its tombstone", "{held, values[first + 1]}, {value", "{held, nil}, {value"},
	{"undo is the same as a release", "always = always, undo = undo,", "always = always, undo = '0',"},
}

// listLocks and listOwners are those of a run. The second owner makes attempts.
var listLocks, listOwners = []string{"lock0", "lock1", "lock {2}"}, []string{"ann", "bob", "zoe"}

// longSeeds is the divisor of seeds whose lists are as long as lists can be, and have each lock only
// once.
const longSeeds = 8

// namesOf returns the locks of a run.
func namesOf(seed uint64) []string {
	if seed%longSeeds > 0 || seed >= shareSeeds {
		return listLocks
	}
	names := slices.Clone(listLocks)
	for i := range 2 * script.MaxSteps {
		names = append(names, fmt.Sprint("other", i))
	}
	return names
}

// listQuestion draws one step.
func (e *ears) listQuestion(r *rand.Rand, owners []string) driver.Question {
	lease := func() store.Lease {
		l := store.Lease{Name: pick(r, listLocks), Owner: pick(r, owners), Meta: `{"pid":1}`, TTL: pick(r, []time.Duration{time.Minute, time.Hour}), Require: store.Class(r.IntN(2)) * store.CrashSafe}
		if l.Owner == owners[1] {
			l.Attempt = pick(r, []string{"one", "-"})
		}
		return l
	}
	flag := func() bool { return r.IntN(3) == 0 }
	often := func() bool { first := flag(); return first || flag() }
	q := driver.Question{Lease: lease(), Stamp: clock.Instant(1 + r.IntN(1000))}
	acquires := func(q *driver.Question) {
		q.Op, q.Waits, q.Again, q.QueueOnly, q.IfHeld, q.Barge = quorum.Acquire, often(), flag(), flag(), flag(), flag()
	}
	switch pick(r, []int{0, 0, 0, 1, 1, 1, 2, 3, 4, 5}) {
	case 0:
		acquires(&q)
	case 1:
		q.Op, q.Tombstone, q.Renewed, q.Undo = quorum.Release, flag(), flag(), flag()
		if q.GivesWay = flag(); q.GivesWay && flag() {
			q.To = pick(r, owners)
		}
	case 2:
		q.Op, q.Token = quorum.Confirm, uint64(e.s.Wall().UnixMicro())+uint64(r.IntN(3))*1000
	case 3:
		q.Op = quorum.Extend
	case 4:
		q.Op, q.Lease.Require = quorum.Heal, store.CrashSafe
	case 5:
		q.Op, q.Tombstone = quorum.Release, flag()
		next := driver.Question{Lease: q.Lease, Stamp: q.Stamp}
		acquires(&next)
		next.Waits, next.Again, next.Lease.Owner, next.Lease.Attempt = true, false, owners[2], ""
		q.Next = &next
	}
	return q
}

// onlyFor makes q a question about that lock.
func onlyFor(name string, q driver.Question) driver.Question {
	if q.Lease.Name = name; q.Next != nil {
		q.Next.Lease.Name = name
	}
	return q
}

// doable makes q a step that is done as it is asked: a new owner acquires the lock without waiting
// or, if it is held, the same owner releases it.
func doable(q driver.Question, owner string, held map[string]bool) driver.Question {
	q.Op = quorum.Acquire
	if held[q.Lease.Name] {
		q.Op = quorum.Release
	}
	held[q.Lease.Name] = !held[q.Lease.Name]
	q.Waits, q.Again, q.Renewed, q.Undo, q.Next = false, false, false, false, nil
	q.Lease.Owner, q.Lease.Attempt = owner, ""
	return q
}

// someKind draws a kind of lock that several can hold.
func someKind(r *rand.Rand) store.Kind {
	return pick(r, []store.Kind{store.Semaphore(2), store.Semaphore(2), store.Semaphore(3), store.ReadWrite, store.ReadWrite})
}

// ofSomeKind makes q a question about a lock that several can hold, perhaps to one of several
// servers. Most have the kind of that lock, since others are refused.
func ofSomeKind(q driver.Question, of map[string]store.Kind, several bool, r *rand.Rand) driver.Question {
	if q.Lease.Kind = of[q.Lease.Name]; r.IntN(6) == 0 {
		q.Lease.Kind = someKind(r)
	}
	q.Next, q.IfHeld = nil, false
	q.Lease.Weight = pick(r, []int64{1, 1, q.Lease.Kind.Limit})
	if several {
		q.Lease.Slots = slotsFrom(pick(r, []int64{-1, 0, 0, 1}), q.Lease)
		q.Exact = q.Lease.Slots != nil && r.IntN(2) == 0
		return q
	}
	q.GivesWay, q.To = false, ""
	if q.Op == quorum.Confirm || q.Op == quorum.Heal {
		q.Op = quorum.Acquire
	}
	return q
}

// bothWays does some steps one by one, and then as a list from the same state. It returns the
// difference.
func (e *ears) bothWays(seed uint64, seen map[string]int) (string, error) {
	r := rand.New(rand.NewPCG(seed, 2))
	begin := clock.Instant(1_790_000_000_123_456_000)
	if err := e.Begin(begin); err != nil {
		return "", err
	}
	now, err := e.Clock()
	if err != nil {
		return "", err
	}
	propose := time.Unix(0, int64(now)).Add(500 * time.Millisecond)
	e.s.Wall = func() time.Time { return propose }
	e.s.Membership.Fingerprint, e.s.Channel = "0123456789ab", script.ChannelBegin+"x"
	e.wire.canPush, e.wire.run = r.IntN(4) > 0, ""
	if err := e.listen("x", r.IntN(3) > 0); err != nil {
		return "", err
	}
	var owners []string
	for i, o := range listOwners {
		owners = append(owners, o+"."+strconv.FormatInt(int64(now)/1000+int64(i)*200_000, 36))
	}
	state := []*script.Command{script.NewCommand("FLUSHALL"), command(marks[r.IntN(2)*r.IntN(len(marks))], script.MarkKey)}
	names := namesOf(seed)
	long := len(names) > len(listLocks)
	prepared, held := names, make(map[string]bool)
	easy := long && r.IntN(2) == 0 // all steps are done as they are asked
	if easy {
		state, prepared = []*script.Command{script.NewCommand("FLUSHALL"), command(marks[0], script.MarkKey)}, nil
	}
	for _, lock := range prepared {
		if r.IntN(3) == 0 {
			state = append(state, command(leaseStates[r.IntN(len(leaseStates))], pick(r, owners)+`|{"pid":1}`, strings.ReplaceAll(lock, " ", "|")))
		}
		if r.IntN(4) == 0 {
			state = append(state, script.NewCommand("RPUSH", keysOf(lock)[1], "x"))
		} else if seed < shareSeeds && r.IntN(2) == 0 { // just below the proposals
			last := propose.Add(script.ProposalLead).UnixMicro() - int64(r.IntN(6))
			state = append(state, script.NewCommand("SET", keysOf(lock)[1], strconv.FormatInt(last, 10), "PX", "7200000"))
		}
	}
	enc := e.s.Encoder()
	enc.Several = seed >= shareSeeds && seed%2 == 0
	kinds := make(map[string]store.Kind)
	if seed >= shareSeeds {
		for _, name := range listLocks {
			kinds[name] = someKind(r)
		}
	}
	draw := func(n int) (all []*script.Command) {
		for i := range n {
			var c *script.Command
			q := e.listQuestion(r, owners)
			if seed >= shareSeeds {
				q = ofSomeKind(q, kinds, enc.Several, r)
			}
			if long {
				q = onlyFor(names[i], q)
			}
			if easy {
				q = doable(q, owners[0], held)
			}
			if q.Op == quorum.Extend && !long && r.IntN(2) == 0 {
				leases := []store.Lease{q.Lease}
				for range 1 + r.IntN(3) {
					l := q.Lease
					l.Name = pick(r, listLocks)
					leases = append(leases, l)
				}
				c, _ = enc.Bundle(leases, nil)
			} else {
				c = enc.Encode(q, nil)
			}
			c.Bytes = e.wire.fill(c, c.Bytes)
			all = append(all, c)
		}
		return all
	}
	before, most := r.IntN(8), 8
	if long {
		before, most = len(names)/2, script.MaxSteps
	}
	first := draw(before)
	if long {
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	}
	steps := draw(2 + r.IntN(most-1))
	var expires []*script.Command // a lock that is gone while others wait for it
	if seed >= shareSeeds && r.IntN(4) == 0 {
		expires = append(expires, script.NewCommand("DEL", pick(r, listLocks)))
	}
	var said [2][]string
	for way, do := range []func([]*script.Command) ([]script.Reply, error){e.one, e.asList} {
		if _, err := e.wire.Exchange(script.Bytes(state...)...); err != nil {
			return "", err
		}
		if _, err := e.one(first); err != nil {
			return "", err
		}
		if len(expires) > 0 {
			if _, err := e.wire.Exchange(script.Bytes(expires...)...); err != nil {
				return "", err
			}
		}
		if _, err := e.messages(); err != nil {
			return "", err
		}
		answers, err := do(steps)
		if err != nil {
			return "", err
		}
		for i, r := range answers {
			text := describe(r, steps[i])
			said[way] = append(said[way], fmt.Sprintf("%d. %s: %s", i+1, steps[i].Script.Name, text))
			seen[steps[i].Script.Name+" "+strings.SplitN(text, " ", 3)[0]+strings.SplitN(text+" ", " ", 3)[1]]++
		}
		pushes, err := e.messages()
		if err != nil {
			return "", err
		}
		for _, m := range pushes {
			words := strings.Fields(m)
			said[way] = append(said[way], "push "+strings.Join(words[:min(4, len(words))], " "))
		}
		keys, err := e.keys()
		if err != nil {
			return "", err
		}
		said[way] = append(said[way], keys...)
	}
	// A clock that cannot be set may have advanced beyond the proposal.
	if after, err := e.Clock(); err != nil || int64(after) > propose.UnixNano() {
		return "", err
	}
	if !slices.Equal(said[0], said[1]) {
		var what []string
		for _, c := range steps {
			what = append(what, fmt.Sprintf("%s %+v", c.Script.Name, c.Question))
		}
		return fmt.Sprintf("steps:\n%s\none by one:\n%s\nas a list:\n%s", strings.Join(what, "\n"), strings.Join(said[0], "\n"), strings.Join(said[1], "\n")), nil
	}
	return "", nil
}

// command makes a command of a text, in which a | stands for a space.
func command(format string, args ...any) *script.Command {
	words := strings.Split(fmt.Sprintf(format, args...), " ")
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], "|", " ")
	}
	return script.NewCommand(words...)
}

// one sends one command after the other.
func (n *scripted) one(steps []*script.Command) (all []script.Reply, err error) {
	for _, c := range steps {
		v, err := n.wire.Exchange(n.byText(c).Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, script.ReplyTo(v[0].Clone()))
	}
	return all, nil
}

// asList sends all steps in one call.
func (n *scripted) asList(steps []*script.Command) ([]script.Reply, error) {
	var list script.StepList
	for _, c := range steps {
		if !list.Add(c) {
			return nil, fmt.Errorf("%s: not in a list", c.Script.Name)
		}
	}
	text := list.Script().Text()
	if n.change != nil {
		text = n.change(text)
	}
	b := list.Append(nil, false, "")
	// The call has the text of the script in place of its hash.
	hash := fmt.Sprintf("$7\r\nEVALSHA\r\n$40\r\n%s\r\n", list.Script().Hash())
	v, err := n.wire.Exchange([]byte(strings.Replace(string(b), hash, fmt.Sprintf("$4\r\nEVAL\r\n$%d\r\n%s\r\n", len(text), text), 1)))
	if err != nil {
		return nil, err
	}
	whole := script.ReplyToList(v[0].Clone(), len(steps))
	var all []script.Reply
	for i, c := range steps {
		all = append(all, whole.Step(i, c))
	}
	return all, nil
}

// describe formats the answer to a step, without what changes with the clock.
func describe(r script.Reply, c *script.Command) string {
	one := func(r script.Reply, s *script.Script) string {
		a := r.Answer(s)
		text := fmt.Sprint(a.Report.Err)
		if a.Report.Outcome == store.WrongType { // the text also names the place in the script
			text = "that it is"
		}
		return fmt.Sprintf("%v %v %v %v, %v, token %d, slot %d, position %d %v, clock %v", a.Kind, a.Report.Outcome, a.Report.Holder, a.Report.ExpiresIn.Round(10*time.Second), text, a.Token, a.Slot, a.Position, a.NoPush, a.Clock > 0)
	}
	if c.More > 0 {
		r.At = 1
		usual, others := r.Answers(c.Script, c.More+1)
		text := fmt.Sprint(usual.Kind, " ", usual.Report.Outcome, " ", usual.RetrySingly)
		for _, x := range others {
			text += fmt.Sprint("; ", x.Lease, " ", x.Kind, " ", x.Report.Outcome, " ", x.Report.Holder, x.Report.ExpiresIn.Round(10*time.Second))
		}
		return text
	}
	first, next := r.Parts(c.Script)
	text := one(first, c.Script)
	if first.Outcome == store.Granted && c.Question.Next != nil && len(r.Value.List) == 2 {
		text += "; " + one(next, script.Acquire)
	}
	return text
}

// milliseconds matches the times in records.
var milliseconds = regexp.MustCompile(`\b\d{13}\b`)

// keys formats all keys and their values.
func (n *scripted) keys() (all []string, err error) {
	v, err := n.run(script.NewCommand("KEYS", "*"))
	if err != nil {
		return nil, err
	}
	for _, k := range v[0].Clone().List {
		key := string(k.Text)
		v, err := n.wire.Exchange(resp.Command("TYPE", key), resp.Command("PTTL", key), resp.Command("GET", key), resp.Command("LRANGE", key, "0", "-1"), resp.Command("HGETALL", key), resp.Command("ZRANGE", key, "0", "-1"))
		if err != nil {
			return nil, err
		}
		text := string(v[2].Text)
		switch kind := string(v[0].Text); {
		case kind != "string":
			text = kind
		case strings.Contains(key, "}:place:") && len(text) > 14: // without the time of its end
			text = text[:1] + text[14:]
		case strings.Contains(key, "}:waits") && len(text) > 28:
			text = text[28:]
		}
		if n.sim == nil { // the clock has gone on since the other way
			text = milliseconds.ReplaceAllString(text, "T")
		}
		for _, list := range v[3:] {
			if list.Kind == '*' {
				if kind := string(v[0].Text); kind != "list" { // without an order, or in that of the clock
					slices.SortFunc(list.List, func(a, b resp.Value) int { return bytes.Compare(a.Text, b.Text) })
				}
				text += milliseconds.ReplaceAllString(fmt.Sprint(list.List), "T")
			}
		}
		all = append(all, fmt.Sprintf("%s = %s, left %v", key, text, (time.Duration(v[1].Num)*time.Millisecond).Round(10*time.Second)))
	}
	slices.Sort(all)
	return all, nil
}
