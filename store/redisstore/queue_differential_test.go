package redisstore

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/proof/differential"
	"github.com/leasehold-dev/leasehold/internal/proof/modelnode"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
	"pgregory.net/rapid"
)

// The scripts keep a queue as the model node does: after every step the answers, the
// messages to waiters and the keys are the same.

func TestQueuesOnSimulatedRedis(t *testing.T) { checkQueues(t, onSimulated(t)) }

func TestQueuesOnRedis(t *testing.T) { checkQueues(t, onRedis(t)) }

// The tests with lists send several steps for one lock as a list.
func TestQueuesInListsOnSimulatedRedis(t *testing.T) {
	n := onSimulated(t)
	n.lists = true
	checkQueues(t, n)
}

func TestQueuesInListsOnRedis(t *testing.T) {
	n := onRedis(t)
	n.lists = true
	checkQueues(t, n)
}

// The comparison notices every change in what a script does with queues.
func TestQueuesChanged(t *testing.T) {
	n := listening(t, onSimulated(t))
	noticesAll(t, n.scripted, queueChanges, func() error { return findQueue(n, 1500) })
}

// queueOp is the kind of a step.
type queueOp uint8

const (
	asks queueOp = iota // waits in the queue, or takes the lock
	tries
	releases
	returns // releases it, with a place for To
	cedes
	heals
	confirms
	extends
	passes
	hushes // its channel is subscribed, or unsubscribed
	strangerSets
	strangerDeletes
	losesAll
)

var queueOpNames = [...]string{"asks", "tries", "releases", "returns for", "cedes to", "is healed", "confirms", "extends", "time passes", "listens or not", "a stranger sets", "a stranger deletes", "all is lost"}

// queueStep is one step.
type queueStep struct {
	Op        queueOp
	Owner, To int
	TTL       time.Duration
	Ahead     int64 // of the proposal, in microseconds
	Raise     int   // how far a confirm raises the counter, less one
	// Again is also set if the owner has a place.
	Again, Stand, Behind, Barge, Tombstone, Renewed bool
	// Onward makes the proposal lead the counter, not the clock.
	Onward bool
}

func (s queueStep) String() string {
	type plain queueStep
	return fmt.Sprintf("%d %s: %+v", s.Owner, queueOpNames[s.Op], plain(s))
}

const queueLock = "a {b}:\x00\xff*"

// queueOwners is the number of owners. The ranks of the first four are near the time at which
// the run begins, in microseconds. Some are not if the clock can be set.
const queueOwners = 5

var queueRanks = map[bool][]int64{
	false: {400_000, 200_000, 600_000, 200_000},
	true:  {-500_000, 0, 5_000_000, -3_000_000},
}

func queueSteps(exact bool) *rapid.Generator[[]queueStep] {
	often := slices.Concat(slices.Repeat([]queueOp{asks}, 12), slices.Repeat([]queueOp{tries, confirms, extends}, 2), slices.Repeat([]queueOp{releases}, 7), slices.Repeat([]queueOp{returns}, 3),
		slices.Repeat([]queueOp{cedes, heals, passes, hushes}, 3), []queueOp{strangerSets, strangerDeletes, losesAll})
	flag := rapid.SampledFrom([]bool{false, false, true})
	one := rapid.Custom(func(t *rapid.T) queueStep {
		s := queueStep{
			Op: rapid.SampledFrom(often).Draw(t, "op"), Owner: rapid.IntRange(0, queueOwners-1).Draw(t, "owner"), To: rapid.IntRange(-1, queueOwners-1).Draw(t, "to"),
			TTL:   rapid.SampledFrom([]time.Duration{queueUnit, 2 * queueUnit, 3 * queueUnit, 30 * queueUnit}).Draw(t, "ttl"),
			Ahead: 500_000, Raise: rapid.SampledFrom([]int{0, 0, 1, 64}).Draw(t, "raise"),
			Again: flag.Draw(t, "again"), Stand: flag.Draw(t, "stand"), Behind: flag.Draw(t, "behind"), Barge: flag.Draw(t, "barge"), Tombstone: flag.Draw(t, "tombstone"), Renewed: flag.Draw(t, "renewed"),
		}
		if s.Op == passes {
			s.TTL = rapid.SampledFrom([]time.Duration{queueUnit, 2 * queueUnit}).Draw(t, "time")
		}
		if exact {
			s.Ahead = rapid.SampledFrom([]int64{500_000, 500_000, -500_000, 5_000_000}).Draw(t, "ahead")
			s.Raise = rapid.SampledFrom([]int{0, 0, 1, 64, 700_000, 2_000_000}).Draw(t, "far")
			if s.Onward = flag.Draw(t, "onward"); s.Onward {
				s.Ahead = rapid.SampledFrom([]int64{0, 1, 2, 64, 65}).Draw(t, "ahead")
			}
			s.TTL += rapid.SampledFrom([]time.Duration{0, 0, -time.Millisecond, time.Millisecond}).Draw(t, "odd")
		}
		return s
	})
	return rapid.Custom(func(t *rapid.T) (list []queueStep) {
		t.Repeat(map[string]func(*rapid.T){"step": func(t *rapid.T) { list = append(list, one.Draw(t, "step")) }})
		return list
	})
}

const queueUnit = 10 * time.Minute

func checkQueues(t *testing.T, n *scripted) {
	e := listening(t, n)
	for _, steps := range seldomSteps {
		if err := e.run(steps); err != nil {
			t.Error(err)
		}
	}
	list := queueSteps(n.sim != nil)
	rapid.Check(t, func(t *rapid.T) {
		if err := e.run(list.Draw(t, "steps")); err != nil {
			t.Log(err)
			t.Fatal("the scripts and the model differ: see below")
		}
	})
}

// seldomSteps has lists of steps that chance draws too seldom.
var seldomSteps = [][]queueStep{{
	// The place of the rejoin was for longer, and is gone: no push announced its grant.
	{Op: asks, Owner: 0, TTL: 30 * queueUnit, Ahead: 500_000},
	{Op: asks, Owner: 1, TTL: 30 * queueUnit, Ahead: 500_000},
	{Op: asks, Owner: 2, TTL: 30 * queueUnit, Ahead: 500_000},
	{Op: hushes, Owner: 1},
	{Op: returns, Owner: 0, To: 1, TTL: queueUnit, Ahead: 500_000},
}, {
	// An owner that does not hold the lock returns it beside a tombstone.
	{Op: asks, Owner: 3, TTL: 2 * queueUnit, Ahead: 500_000, Stand: true},
	{Op: releases, Owner: 4, TTL: queueUnit, Tombstone: true},
	{Op: returns, Owner: 3, To: 2, TTL: 30 * queueUnit, Barge: true, Renewed: true},
}, {
	// The same with a queue that has only an owner that has given up its place.
	{Op: asks, Owner: 0, TTL: 2 * queueUnit, Ahead: 500_000, Stand: true},
	{Op: cedes, Owner: 0, TTL: 2 * queueUnit, Behind: true},
	{Op: returns, Owner: 3, To: 4, TTL: queueUnit, Stand: true, Behind: true, Barge: true, Renewed: true},
}}

// findQueue returns the first difference in some lists of steps, the same each time.
func findQueue(e *ears, lists int) error {
	for _, steps := range seldomSteps {
		if err := e.run(steps); err != nil {
			return err
		}
	}
	for seed := range lists {
		if seed == len(e.examples) {
			e.examples = append(e.examples, queueSteps(e.sim != nil).Example(seed))
		}
		if err := e.run(e.examples[seed]); err != nil {
			return err
		}
	}
	return nil
}

// queueRun is one run through a list of steps.
type queueRun struct {
	*ears
	owners []string
	rules  modelnode.Rules
	model  modelnode.Lock[string]
	now    clock.Instant   // of the model
	noPush map[string]bool // owners without a subscriber when they last asked
	asked  []queueAsk      // the questions still to be sent to the server
	trace  strings.Builder
}

func (e *ears) run(steps []queueStep) error {
	begin := clock.Instant(1_790_000_000_123_456_000)
	if err := e.reset(begin); err != nil {
		return err
	}
	r := &queueRun{ears: e, rules: modelnode.Shipped(), now: begin, noPush: map[string]bool{}}
	clock, err := e.Clock()
	if err != nil {
		return err
	}
	r.rules.NoClock = e.sim == nil
	for i, offset := range queueRanks[e.sim != nil] {
		r.owners = append(r.owners, []string{"ann", "an", "b", "zoe"}[i]+"."+strconv.FormatInt(int64(clock)/1000+offset, 36))
	}
	r.owners = append(r.owners, "rankless")
	if err := r.hear(r.owners[:3]); err != nil {
		return err
	}
	for i, s := range steps {
		fmt.Fprintf(&r.trace, "%3d. %v\n", i+1, s)
		err := r.step(s)
		if i+1 == len(steps) || !r.lists || i%5 == 4 {
			err = errors.Join(err, r.finish())
		}
		if errors.Is(err, errSlow) {
			return nil
		} else if err != nil {
			return fmt.Errorf("owners %q, after\n%s%w", r.owners, r.trace.String(), err)
		}
	}
	return nil
}

// queueAsk is a question that the model has answered.
type queueAsk struct {
	question    driver.Question
	command     *script.Command
	want, stood modelnode.Answer[string]
	told        []string // messages to waiters
	propose     time.Time
}

// handed formats the message of a hand-off.
func handed(owner string, token, stamp uint64) string {
	return fmt.Sprintf("handed %s %d %d", owner, token, stamp)
}

// step makes the model take a step. A step that is no question is also done on the server at
// once, after all questions before it.
func (r *queueRun) step(s queueStep) error {
	if s.Op >= passes {
		if err := r.finish(); err != nil {
			return err
		}
	}
	switch s.Op {
	case passes:
		r.now = r.now.Add(s.TTL)
		if err := r.Pass(s.TTL); err != nil {
			return err
		}
		return r.look()
	case hushes:
		return r.turn(r.owners[s.Owner])
	case strangerSets, strangerDeletes, losesAll:
		return r.meddle(s)
	}
	q := r.question(s)
	want, stood := r.byModel(s, q)
	var told []string
	for _, m := range want.Pushes {
		if text := "free " + m.Owner; r.heard[m.Owner] && !m.Granted {
			told = append(told, text)
		} else if r.heard[m.Owner] {
			told = append(told, handed(m.Owner, m.Token, m.Stamp))
		}
	}
	r.asked = append(r.asked, queueAsk{q, r.command(q), want, stood, told, r.s.Wall().Add(script.ProposalLead)})
	return nil
}

// finish makes the scripts do what the model has done, and compares the two.
func (r *queueRun) finish() error {
	if len(r.asked) == 0 {
		return nil
	}
	asked := r.asked
	r.asked = nil
	replies, heard, err := r.byScript(asked)
	if err != nil {
		return err
	}
	var told []string
	for _, a := range asked {
		told = append(told, a.told...)
	}
	if !slices.Equal(heard, told) {
		return fmt.Errorf("pushed %q, want %q", heard, told)
	}
	for i, a := range asked {
		s := a.command.Script
		got, next := replies[i].Parts(s)
		if err := r.same(a.question, got.Answer(s), a.want); err != nil {
			return fmt.Errorf("answer %d of %d: %w", i+1, len(asked), err)
		}
		if a.question.Next != nil {
			if err := r.same(*a.question.Next, next.Answer(script.Acquire), a.stood); err != nil {
				return fmt.Errorf("in the answer to the rejoin: %w", err)
			}
		}
	}
	return r.look()
}

// question returns a step as a question of the store.
func (r *queueRun) question(s queueStep) driver.Question {
	owner := r.owners[s.Owner]
	q := driver.Question{Lease: store.Lease{Name: queueLock, Owner: owner, Meta: `{"pid":1}`, TTL: s.TTL}, Barge: s.Barge, Renewed: s.Renewed}
	placed := slices.ContainsFunc(r.model.Queue, func(p modelnode.Place[string]) bool { return p.Owner == owner })
	switch s.Op {
	case asks:
		q.Op, q.Waits, q.QueueOnly, q.IfHeld, q.Stamp = quorum.Acquire, true, s.Stand, s.Behind, clock.Instant(r.trace.Len())<<40
		q.Again = s.Again || placed
	case tries: // an owner with a place keeps asking for it
		q.Op, q.Waits, q.Again = quorum.Acquire, placed, placed
	case heals:
		q.Op = quorum.Heal
	case confirms:
		q.Op, q.Token = quorum.Confirm, r.model.Token(r.now)+uint64(s.Raise)+1
	case extends:
		q.Op = quorum.Extend
	default:
		q.Op, q.Tombstone = quorum.Release, s.Tombstone
		if s.Op == returns && s.To >= 0 && s.To != s.Owner {
			next := store.Lease{Name: queueLock, Owner: r.owners[s.To], Meta: `{"pid":1}`, TTL: 2 * s.TTL}
			q.Next = &driver.Question{Op: quorum.Acquire, Lease: next, Barge: s.Barge, Waits: true, QueueOnly: s.Stand, IfHeld: !s.Stand, Stamp: clock.Instant(r.trace.Len()) << 40}
		}
		if s.Op != cedes {
			break
		}
		if q.GivesWay = true; s.To >= 0 && s.To != s.Owner {
			q.To = r.owners[s.To]
		}
	}
	return q
}

func (r *queueRun) reach(owner string) bool { return r.noPush[owner] || r.heard[owner] }

// byModel makes the model take the step, and returns its answers to q and to q.Next.
func (r *queueRun) byModel(s queueStep, q driver.Question) (ans, next modelnode.Answer[string]) {
	clock, _ := r.Clock()
	propose := uint64(int64(clock)/1000 + s.Ahead)
	if s.Onward {
		propose = r.model.Token(r.now) + uint64(s.Ahead)
	}
	r.s.Wall = func() time.Time { return time.UnixMicro(int64(propose)).Add(-script.ProposalLead) }
	switch l := q.Lease; q.Op {
	case quorum.Acquire:
		r.model, ans = r.model.Acquire(r.rules, ask(q, propose), r.now)
		r.placed(q, ans)
	case quorum.Heal:
		r.model, ans = r.model.Heal(r.rules, l.Owner, l.TTL, r.now)
	case quorum.Confirm:
		r.model, ans = r.model.Confirm(r.rules, l.Owner, q.Token, r.now)
	case quorum.Extend:
		r.model, ans = r.model.Extend(r.rules, l.Owner, l.TTL, r.now)
	default:
		e := modelnode.Ending[string]{Owner: l.Owner, Renewed: q.Renewed, GivesWay: q.GivesWay, To: q.To, Propose: propose, Reach: r.reach}
		if q.Tombstone {
			e.Tombstone = l.TTL
		}
		if q.Next == nil {
			r.model, ans = r.model.Release(r.rules, e, r.now)
			break
		}
		r.model, ans, next = r.model.Return(r.rules, e, ask(*q.Next, 0), r.now)
		r.placed(*q.Next, next)
	}
	return ans, next
}

// ask returns a question as the model of a node has it.
func ask(q driver.Question, propose uint64) modelnode.Ask[string] {
	l := q.Lease
	return modelnode.Ask[string]{
		Owner: l.Owner, TTL: l.TTL, Propose: propose, Wait: q.Waits, Again: q.Again, Stand: q.QueueOnly, Behind: q.IfHeld, Barge: q.Barge,
		Ticket: store.Rank(l.Owner), Stamp: uint64(q.Stamp),
	}
}

// placed records whether an owner that got a place can be notified at its turn.
func (r *queueRun) placed(q driver.Question, ans modelnode.Answer[string]) {
	if o := q.Lease.Owner; ans.Position > 0 {
		r.noPush[o] = !r.heard[o]
	}
}

// command encodes the question for a connection that receives pushes if the waiter does.
func (r *queueRun) command(q driver.Question) *script.Command {
	waits := q.Lease.Owner // the owner to notify
	if q.Next != nil {
		waits = q.Next.Lease.Owner
	}
	r.s.Channel = script.ChannelBegin + waits
	c := r.s.Encode(q, nil)
	c.Bytes = (&wire{canPush: r.heard[waits]}).fill(c, c.Bytes)
	return c
}

// byScript makes the scripts take the steps, and returns the replies and the pushes.
func (r *queueRun) byScript(asked []queueAsk) (replies []script.Reply, heard []string, err error) {
	var steps []*script.Command
	first := asked[0].propose
	for _, a := range asked {
		steps = append(steps, a.command)
		if a.propose.Before(first) {
			first = a.propose
		}
	}
	if _, err := r.scripted.run(script.NewCommand("SET", script.MarkKey, openMark)); err != nil {
		return nil, nil, err
	}
	if len(steps) > 1 {
		replies, err = r.asList(steps)
	} else {
		replies, err = r.one(steps)
	}
	if err != nil {
		return nil, nil, err
	}
	for _, r := range replies {
		if r.Err != nil {
			return nil, nil, r.Err
		}
	}
	after, err := r.scripted.run(script.NewCommand("TIME"), script.NewCommand("DEL", script.MarkKey))
	if err != nil {
		return nil, nil, err
	}
	now, err := timeOf(after[0])
	if err != nil {
		return nil, nil, err
	}
	if r.slow(now, first) {
		return nil, nil, errSlow
	}
	all, err := r.messages()
	for _, m := range all {
		t, ok := script.ParsePush(m)
		switch {
		case !ok:
			return nil, nil, fmt.Errorf("not a push message: %q", m)
		case t.Granted:
			m = handed(t.Owner, t.Token, uint64(t.Stamp))
			if off := t.Clock.Sub(now); off > 0 || off < -time.Second {
				return nil, nil, fmt.Errorf("the clock in the message is off by %v", off)
			}
		}
		heard = append(heard, m)
	}
	return replies, heard, err
}

// same compares the answers.
func (r *queueRun) same(q driver.Question, got driver.Reply, want modelnode.Answer[string]) error {
	kind, outcome := quorum.No, store.Taken
	switch {
	case want.Verdict == modelnode.Done:
		kind, outcome = quorum.Yes, store.Granted
	case want.Verdict == modelnode.Buried:
		outcome = store.Refused
	case want.Holder == "":
		kind, outcome = quorum.Absent, store.Absent
	}
	token := want.Token
	if q.Op != quorum.Acquire && q.Op != quorum.Confirm {
		token = 0
	}
	noPush := want.Position > 0 && !r.heard[q.Lease.Owner]
	if got.Kind != kind || got.Report.Outcome != outcome || got.Token != token || got.Report.Holder.Owner != want.Holder ||
		got.Position != want.Position || got.NoPush != noPush {
		return fmt.Errorf("the script answers %+v\nthe model %+v", got, want)
	}
	if left := got.Report.ExpiresIn; outcome == store.Taken && kind == quorum.No && r.near(left.Milliseconds()) != r.near(want.ExpiresIn.Milliseconds()) {
		return fmt.Errorf("the script says that the lock ends in %v, the model in %v", left, want.ExpiresIn)
	}
	return nil
}

// meddle does what other clients or a loss of data do.
func (r *queueRun) meddle(s queueStep) error {
	words := []string{"FLUSHALL"}
	_, _, held := r.model.Holder(r.now)
	switch s.Op {
	case strangerSets:
		words = []string{"SET", queueLock, differential.Stranger, "NX", "PX", millis(s.TTL)}
		if !held {
			r.model.Owner, r.model.Expiry = differential.Stranger, r.now.Add(s.TTL)
		}
	case strangerDeletes:
		words = []string{"DEL", queueLock}
		r.model.Owner, r.model.Expiry = "", 0
	default:
		r.model = r.model.Crash(false, 0, r.now)
	}
	if _, err := r.scripted.run(script.NewCommand(words...)); err != nil {
		return err
	}
	return r.look()
}

// look compares the keys of the server with the model.
func (r *queueRun) look() error {
	commands := []*script.Command{script.NewCommand("KEYS", "*"), script.NewCommand("GET", queueLock), script.NewCommand("PTTL", queueLock), script.NewCommand("GET", script.KeyBegin+queueLock+script.CounterEnd)}
	replies, err := r.scripted.run(append(commands, r.byText(r.s.InspectCommand(queueLock)))...)
	if err != nil {
		return err
	}
	got := map[string]string{"holder": whose(replies[1]), "left": r.near(replies[2].Num), "counter": string(replies[3].Text)}
	if replies[1].Null {
		got["left"] = ""
	}
	_, _, line := script.ReplyTo(replies[4]).Look()
	for i, p := range line {
		got[fmt.Sprint("place ", i+1)] = p.Holder.Owner + " for " + r.near(p.ExpiresIn.Milliseconds())
	}
	longest := int64(-2)
	for _, v := range replies[0].List {
		key := string(v.Text)
		more, err := r.scripted.run(script.NewCommand("PTTL", key))
		if err != nil {
			return err
		}
		switch left := more[0].Num; {
		case left == -1:
			return fmt.Errorf("%q has no TTL", key)
		case strings.Contains(key, script.TombstoneMiddle):
			got["tombstone of "+key[strings.LastIndex(key, ":")+1:]] = r.near(left)
		case strings.Contains(key, script.PlaceMiddle):
			longest = max(longest, left)
			got["place of "+key[strings.LastIndex(key, ":")+1:]] = r.near(left)
		}
	}
	more, err := r.scripted.run(script.NewCommand("PTTL", script.KeyBegin+queueLock+script.QueueEnd), script.NewCommand("PTTL", script.KeyBegin+queueLock+script.WaitsEnd))
	if err != nil {
		return err
	}
	if r.sim == nil {
		longest -= queueUnit.Milliseconds() / 2 // time passes between the two commands
	}
	if lasts := min(more[0].Num, more[1].Num); lasts < longest {
		return fmt.Errorf("the queue lasts for %d ms, a place for %d", lasts, longest)
	}
	if want := r.wanted(); !maps.Equal(got, want) {
		return fmt.Errorf("the server has %v\nthe model     %v", got, want)
	}
	return nil
}

// wanted returns the state of the model in the form of look.
func (r *queueRun) wanted() map[string]string {
	want := map[string]string{"holder": "", "left": "", "counter": ""}
	if o, left, held := r.model.Holder(r.now); held {
		want["holder"], want["left"] = o, r.near(left.Milliseconds())
	}
	if token := r.model.Token(r.now); token > 0 {
		want["counter"] = strconv.FormatUint(token, 10)
	}
	for _, t := range r.model.Tombstones {
		if r.now < t.Expiry {
			want["tombstone of "+t.Owner] = r.near(t.Expiry.Sub(r.now).Milliseconds())
		}
	}
	i := 0
	for _, p := range r.model.Queue {
		if r.now < p.Expiry {
			i++
			left := r.near(p.Expiry.Sub(r.now).Milliseconds())
			want[fmt.Sprint("place ", i)], want["place of "+p.Owner] = p.Owner+" for "+left, left
		}
	}
	return want
}

// near returns ears.near of a number of milliseconds.
func (r *queueRun) near(ms int64) string {
	return r.ears.near(time.Duration(ms) * time.Millisecond)
}

// whose returns the owner whose value it is.
func whose(v resp.Value) string {
	owner, meta, _ := strings.Cut(string(v.Text), " ")
	if owner != "" && owner != differential.Stranger && meta != `{"pid":1}` {
		return fmt.Sprintf("an unknown owner (%q)", v.Text)
	}
	return owner
}
