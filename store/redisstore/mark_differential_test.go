package redisstore

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/proof/modelnode"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// The scripts change a mark as the model does, and grant when the model grants, while servers
// restart, get another server's data, are emptied and are declared new, memberships change,
// and the clocks of servers and clients step.

func TestMarksOnSimulatedRedis(t *testing.T) { checkMarks(t, onSimulated(t), markSeeds/4) }

func TestMarksOnRedis(t *testing.T) { checkMarks(t, onRedis(t), markSeeds/4) }

// markSeeds is enough for each of markChanges to be noticed many times over.
const markSeeds = 1600

func checkMarks(t *testing.T, n *scripted, seeds int) {
	n.listens(t)
	for seed := range seeds {
		if err := n.marks(seed); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// The comparison notices every change of a script that writes or reads the mark.
func TestMarkScriptsChanged(t *testing.T) {
	n := onSimulated(t)
	n.listens(t)
	noticesAll(t, n, markChanges, func() error {
		for seed := range markSeeds {
			if err := n.marks(seed); err != nil {
				return fmt.Errorf("seed %d: %w", seed, err)
			}
		}
		return nil
	})
}

var markChanges = []change{
	{name: "arrive misses an emptied server", script: script.Arrive,
		old: "why = 'empty'", new: ""},
	{name: "arrive ignores the run id", script: script.Arrive,
		old: "elseif mark.run ~= client.run then", new: "elseif false then"},
	{name: "arrive does not store the run id", script: script.Arrive,
		old: "    mark.run = client.run\n", new: ""},
	{name: "arrive keeps the origin of what was forgotten", script: script.Arrive,
		old: "or why and mark.run ~= client.run then", new: "then"},
	{name: "arrive forgets the origin of a durable server that restarts", script: script.Arrive,
		old: "or why and mark.run ~= client.run then", new: "or mark.run ~= client.run then"},
	{name: "arrive does not store the replication id", script: script.Arrive,
		old: "mark.replication = client.replication", new: ""},
	{name: "arrive deletes the replication id", script: script.Arrive,
		old: "if client.replication ~= '-' then", new: "if true then"},
	{name: "arrive on an old connection ends durability", script: script.Arrive,
		old: "and client.durable ~= 'unasked' then", new: "then"},
	{name: "arrive stores an unknown run id", script: script.Arrive,
		old: "if client.run ~= '-' then\n    if mark.origin", new: "if true then\n    if mark.origin"},
	{name: "arrive ignores the replication id", script: script.Arrive,
		old: "mark.replication ~= client.replication and client.promoted", new: "false"},
	{name: "arrive takes any other replication id for another server's", script: script.Arrive,
		old: "mark.replication ~= client.replication and client.promoted", new: "mark.replication ~= client.replication"},
	{name: "arrive accepts durability that no client has seen", script: script.Arrive,
		old: "mark.durable > 0 and", new: ""},
	{name: "arrive accepts durability at once", script: script.Arrive,
		old: "mark.durable + mark.longest <= now", new: "mark.durable <= now"},
	{name: "arrive counts durability by the server's clock alone", script: script.Arrive,
		old: "and mark.clientDurable + mark.longest <= client.wall", new: ""},
	{name: "arrive accepts durability that the server no longer has", script: script.Arrive,
		old: "and (client.durable == 'always' or client.durable == 'asserted')", new: ""},
	{name: "arrive accepts the durability of a replica", script: script.Arrive,
		old: "and not client.promoted and", new: "and"},
	{name: "arrive accepts the durability of a copy that is behind", script: script.Arrive,
		old: "and client.counter >= client.seen", new: ""},
	{name: "arrive misses that the same run is behind", script: script.Arrive,
		old: "elseif mark.why ~= 'declared' and client.counter < client.seen and", new: "elseif false and"},
	{name: "arrive begins another quarantine for each client with an earlier grant", script: script.Arrive,
		old: " and client.seen >= mark.opens - mark.longest", new: ""},
	{name: "arrive takes a loss after the quarantine for an earlier loss", script: script.Arrive,
		old: "client.seen >= mark.opens - mark.longest", new: "client.seen > mark.opens + 3000000"},
	{name: "arrive lets a client claim durability that it cannot see", script: script.Arrive,
		old: "if client.durable == 'always' then", new: "if client.durable ~= 'never' then"},
	{name: "arrive takes an assertion of durability for an observation", script: script.Arrive,
		old: "if client.durable == 'always' then", new: "if client.durable == 'always' or client.durable == 'asserted' then"},
	{name: "arrive keeps a claim of durability that has ended", script: script.Arrive,
		old: "elseif client.durable ~= 'asserted' and client.durable ~= 'unasked' then", new: "elseif false then"},
	{name: "arrive keeps a claim of durability after a loss", script: script.Arrive,
		old: "    mark.durable, mark.clientDurable = 0, 0\n  elseif mark.state", new: "  elseif mark.state"},
	{name: "arrive starts the time of durability anew at each arrival", script: script.Arrive,
		old: "if mark.durable == 0 then", new: "if true then"},
	{name: "arrive ends a quarantine by the server's clock alone", script: script.Arrive,
		old: "mark.opens <= now and mark.clientOpens <= client.wall", new: "mark.opens <= now"},
	{name: "arrive ends a quarantine by the client's clock alone", script: script.Arrive,
		old: "mark.opens <= now and mark.clientOpens <= client.wall", new: "mark.clientOpens <= client.wall"},
	{name: "arrive never ends a quarantine", script: script.Arrive,
		old: "mark.state = over and 'open' or 'shut'", new: ""},
	{name: "a step back of the server's clock lengthens the quarantine for ever", script: script.Arrive,
		old: "mark.opens = math.min(mark.opens, now + mark.longest)", new: ""},
	{name: "a step back of the client's clock lengthens the quarantine for ever", script: script.Arrive,
		old: "if mark.clientOpens > client.wall + mark.longest then", new: "if false then"},
	{name: "a step back of the client's clock ends the quarantine", script: script.Arrive,
		old: "mark.opens, mark.lengthened = now + mark.longest, '1'", new: "mark.lengthened = '1'"},
	{name: "each client lengthens the quarantine again", script: script.Arrive,
		old: "if mark.lengthened == '0' then", new: "if true then"},
	{name: "arrive forgets the longest quarantine", script: script.Arrive,
		old: "mark.longest = mark.longest + grown", new: "mark.longest = client.quarantine"},
	{name: "arrive does not lengthen for a longer lease", script: script.Arrive,
		old: "mark.opens + grown, mark.clientOpens + grown", new: "mark.opens, mark.clientOpens"},
	{name: "arrive does not resume a quarantine for a longer lease", script: script.Arrive,
		old: "elseif mark.state == 'shut' or grown > 0 and mark.opens > 0 and", new: "elseif mark.state == 'shut' or false and"},
	{name: "arrive does not take a server that was used alone", script: script.Arrive,
		old: "elseif not string.find(mark.list, ',', 1, true) and string.find(string.match(client.list, '^[^>]+'), ',', 1, true) then", new: "elseif false then"},
	{name: "arrive takes a server from others", script: script.Arrive,
		old: "elseif not string.find(mark.list, ',', 1, true) and string.find", new: "elseif string.find"},
	{name: "arrive changes the mark of others", script: script.Arrive,
		old: "if whose == 'other' then", new: "if false then"},
	{name: "arrive takes a server that is in use alone", script: script.Arrive,
		old: "if type(user) == 'string' then", new: "if false then"},
	{name: "arrive takes a server without a majority", script: script.Arrive,
		old: "elseif ARGV[10] == 'not' then", new: "elseif false then"},
	{name: "arrive refuses a client that has one server", script: script.Arrive,
		old: "elseif whose == 'none' and ARGV[10] ~= 'alone' then", new: "elseif whose == 'none' then"},
	{name: "arrive takes the first of two lists for another", script: script.Arrive,
		old: "or mark.print == string.sub(client.print, 1, 12)", new: ""},
	{name: "arrive takes the second of two lists for another", script: script.Arrive,
		old: "or mark.print == string.sub(client.print, 14) then", new: "then"},
	{name: "arrive trusts a server that another one stood in for", script: script.Arrive,
		old: "return 'returned'", new: "return nil"},
	{name: "arrive begins another quarantine for each client that saw the other server", script: script.Arrive,
		old: "and began < now - client.ago then", new: "then"},
	{name: "arrive takes a declaration for one of a quarantine before", script: script.Arrive,
		old: "mark.why == 'declared' and mark.opens or mark.opens - mark.longest", new: "mark.opens - mark.longest"},
	{name: "arrive forgets where the mark is from", script: script.Arrive,
		old: "if mark.origin == '-' or", new: "if true or"},
	{name: "arrive shuts a server that was declared empty for a longer lease", script: script.Arrive,
		old: "mark.opens > 0 and mark.why ~= 'declared' then", new: "mark.opens > 0 then"},
	{name: "arrive accepts both lists", script: script.Arrive,
		old: "string.match(client.print, '^[^>]+'), string.match(client.list, '^[^>]+')", new: "client.print, client.list"},
	{name: "arrive overwrites the mark of another version", script: script.Arrive,
		old: "if version then", new: "if false then"},
	{name: "arrive does not publish a list", script: script.Arrive,
		old: "redis.pcall('PUBLISH', 'leasehold:to:all', '')", new: ""},
	{name: "gate does not report how long a quarantine lasts", script: script.AcquireGuarded,
		old: "math.max(1, mark.opens - now)", new: "1"},
	{name: "gate reports another version", script: script.AcquireGuarded,
		old: "string.sub(words[1], 1, 20)", new: "'1'"},
	{name: "arrive reports another version", script: script.Arrive,
		old: "string.sub(words[1], 1, 20)", new: "'1'"},
	{name: "setMembership reports another version", script: script.SetMembership,
		old: "  return {5, version}", new: "  return {5, ''}"},
	{name: "gate takes the mark of another version for an emptied server", script: script.AcquireGuarded,
		old: "if version then", new: "if false then"},
	{name: "gate admits without a mark", script: script.AcquireGuarded,
		old: "return {3, '1', 'emptied'}", new: "return nil"},
	{name: "gate admits any list", script: script.AcquireGuarded,
		old: "return {4, mark.list}", new: ""},
	{name: "gate does not admit the first of two lists", script: script.AcquireGuarded,
		old: "and mark.print ~= string.sub(print, 1, 12)", new: ""},
	{name: "gate does not admit the second of two lists", script: script.AcquireGuarded,
		old: "and mark.print ~= string.sub(print, 14)", new: ""},
	{name: "gate ignores the run id", script: script.AcquireGuarded,
		old: "return {3, '1', 'replaced'}", new: "mark.run = '-'"},
	{name: "gate ends a quarantine by itself", script: script.AcquireGuarded,
		old: "if mark.state ~= 'open' then", new: "if false then"},
	{name: "gate ignores the client's own count of the quarantine", script: script.AcquireGuarded,
		old: "elseif state == 'wait' and mark.why ~= 'declared' then", new: "elseif false then"},
	{name: "gate ignores a declaration", script: script.AcquireGuarded,
		old: "elseif state == 'wait' and mark.why ~= 'declared' then", new: "elseif state == 'wait' then"},
	{name: "gate admits during a quarantine", script: script.AcquireGuarded,
		old: "string.find(mark, wanted, 1, true) == 1", new: "string.find(mark, string.sub(wanted, 8), 8, true) == 8"},
	{name: "gate admits any run id", script: script.AcquireGuarded,
		old: "string.find(mark, wanted, 1, true) == 1", new: "string.find(mark, string.sub(wanted, 1, -14), 1, true) == 1"},
	{name: "gate admits every client that counts the quarantine itself", script: script.AcquireGuarded,
		old: "string.find(mark, wanted, 1, true) == 1", new: "string.find(mark, '1 open' .. string.sub(wanted, 7), 1, true) == 1"},
	{name: "extend accepts the mark of another version", script: script.ExtendGuarded,
		old: "return {5, version}", new: ""},
	{name: "setMembership overwrites the mark of another version", script: script.SetMembership,
		old: "if version then", new: "if false then"},
	{name: "setMembership undoes a completed replacement", script: script.SetMembership,
		old: "mark.print == final or", new: ""},
	{name: "release ignores the list of the next waiter", script: script.Release,
		old: "if list and list ~= step.print then", new: "if false then"},
	{name: "release takes one of two lists for another", script: script.Release,
		old: "marked ~= list and marked ~= sub(list, 1, 12) and marked ~= sub(list, 14)", new: "marked ~= list"},
	{name: "setMembership replaces any list", script: script.SetMembership,
		old: "or only ~= '' and mark.print ~= only then", new: "then"},
	{name: "setMembership keeps the record of another replacement", script: script.SetMembership,
		old: "mark.before, mark.told = '-', 0", new: ""},
	{name: "setMembership records nothing", script: script.SetMembership,
		old: "mark.before, mark.told = before, time[1] * 1000000 + time[2]", new: ""},
	{name: "setMembership records without a request", script: script.SetMembership,
		old: "elseif before ~= '' and", new: "elseif"},
	{name: "setMembership does not change the list", script: script.SetMembership,
		old: "mark.print, mark.list = print, list", new: "mark.print = print"},
	{name: "setMembership does not publish a list", script: script.SetMembership,
		old: "redis.pcall('PUBLISH', 'leasehold:to:all', '')", new: ""},
}

// markRun is the mark of one server, as the scripts and as the model have it.
type markRun struct {
	*scripted
	r     *rand.Rand
	lists []membership.List
	model string // the text that is expected; empty: none
}

// marks makes some steps from one seed, and returns an error if the two differ.
func (n *scripted) marks(seed int) error {
	m := markRun{scripted: n, r: rand.New(rand.NewPCG(uint64(seed), 1))}
	for _, list := range []string{"a:1", "a:1,b:1,c:1", "a:1,b:1,d:1", "a:1,b:1,c:1>a:1,b:1,d:1", "b:1"} {
		now, next, both := strings.Cut(list, ">")
		var l membership.List
		l.Text, l.Fingerprint = membership.Describe(strings.Split(now, ","))
		if both {
			text, print := membership.Describe(strings.Split(next, ","))
			l.Text, l.Fingerprint = l.Text+">"+text, l.Fingerprint+">"+print
		}
		m.lists = append(m.lists, l)
	}
	if err := n.Begin(clock.Instant(time.Hour * 24 * 365 * 50)); err != nil {
		return err
	}
	if n.s.Size == 0 {
		n.s.Size = 3
	}
	n.s.Wall = time.Now
	for range 12 {
		step, err := m.step()
		if err == nil {
			var said []resp.Value
			if said, err = n.run(script.NewCommand("GET", script.MarkKey)); err == nil {
				text := string(said[0].Text)
				if err = sameMark(text, m.model, n.sim == nil); err == nil {
					m.model = text // to the microsecond
				}
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	return nil
}

// sameMark compares the server's mark with the model's. The clock of a real server runs on
// between the two readings.
func sameMark(got, want string, live bool) error {
	a, err1 := nodemark.Parse(got)
	b, err2 := nodemark.Parse(want)
	if live && err1 == nil && err2 == nil {
		for _, at := range [][2]*int64{{&a.Opens, &b.Opens}, {&a.Durable, &b.Durable}, {&a.ReplacedAt, &b.ReplacedAt}} {
			if off := *at[0] - *at[1]; off >= 0 && off < time.Second.Microseconds() {
				*at[0] = *at[1]
			}
		}
		got, want = a.String(), b.String()
	}
	if got != want {
		return fmt.Errorf("the mark is\n%s, want\n%s", got, want)
	}
	return nil
}

var (
	runs         = []string{strings.Repeat("a", 40), strings.Repeat("b", 40), nodemark.Unknown}
	replications = []string{strings.Repeat("1", 40), strings.Repeat("2", 40), nodemark.Unknown}
	durabilities = []string{"always", "always", "always", "never", "unknown", "asserted", "unasked"}
	steps        = []time.Duration{0, time.Millisecond, time.Second, 3 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, time.Minute}
)

func pick[T any](r *rand.Rand, all []T) T { return all[r.IntN(len(all))] }

// mostly returns the first value in most cases, and otherwise any of them.
func mostly[T any](r *rand.Rand, all []T) T {
	if r.IntN(4) > 0 {
		return all[0]
	}
	return pick(r, all)
}

// step makes one step on both sides.
func (m *markRun) step() (string, error) {
	now, err := m.Clock()
	if err != nil {
		return "clock", err
	}
	us := int64(now) / 1000
	switch m.r.IntN(10) {
	case 0, 1, 2, 3:
		return m.arrives(us)
	case 4:
		return m.setsMembership(us)
	case 5: // the server's clock, which may step back
		if m.sim == nil {
			return "nothing", nil
		}
		d := pick(m.r, steps) * time.Duration(1-2*m.r.IntN(2)*m.r.IntN(2))
		m.now = m.now.Add(d)
		return fmt.Sprint("time ", d), nil
	case 6:
		return m.becomes(us)
	default:
		return m.grants(us)
	}
}

// arrives makes a client arrive.
func (m *markRun) arrives(now int64) (string, error) {
	l := mostly(m.r, m.lists[m.r.IntN(2):])
	c := modelnode.Newcomer{
		Print: l.Fingerprint, List: l.Text, Run: mostly(m.r, runs), Replication: mostly(m.r, replications),
		Promoted: m.r.IntN(4) == 0, Quarantine: pick(m.r, []int64{5e6, 5e6, 10e6}),
		Wall:    now + pick(m.r, steps).Microseconds()*int64(1-2*m.r.IntN(2)),
		Durable: pick(m.r, durabilities), Counter: 7, Seen: pick(m.r, []uint64{0, 6, 7, 7, 8}),
		Joins: mostly(m.r, []string{"may", "not", "alone"}), Origin: pick(m.r, []string{nodemark.Unknown, nodemark.Unknown, runs[0][:12], runs[1][:12]}),
		Ago: pick(m.r, steps).Microseconds(),
	}
	if m.sim == nil { // the clock of a real server runs on
		c.Ago += 500e3
	}
	usedAlone := m.r.IntN(8) == 0
	if mark, err := nodemark.Parse(m.model); err == nil && c.Seen == 8 && mark.Opens > 0 && m.r.IntN(2) == 0 {
		// A token from about when the last quarantine began. A real server's clock runs on
		// between the two sides.
		around := []int64{-1, 0, 1}
		if m.sim == nil {
			around = []int64{-2e6, 2e6}
		}
		c.Seen = uint64(max(0, mark.Opens-mark.Longest+pick(m.r, around)))
	}
	m.s.Membership = l
	m.s.Wall = func() time.Time { return time.UnixMicro(c.Wall) }
	a := membership.Arrival{
		List: l, Quarantine: time.Duration(c.Quarantine) * time.Microsecond, Wall: m.s.Wall(), Joins: membership.Joining(c.Joins), Ago: time.Duration(c.Ago) * time.Microsecond,
		Server: membership.Identity{Promoted: c.Promoted},
	}
	if c.Origin != nodemark.Unknown {
		a.Origin = c.Origin
	}
	if c.Run != nodemark.Unknown {
		a.Server.RunID = c.Run
	} else { // a server with an unknown run id is accepted only if durability is asserted
		c.Durable = "asserted"
	}
	if a.Durable = c.Durable; c.Durable == "unasked" {
		c.Replication = nodemark.Unknown
	}
	if c.Replication != nodemark.Unknown {
		a.Server.Replication = c.Replication
	}
	if c.Seen > 0 {
		a.Lock, a.Token = "seen", c.Seen
	}
	before, err := nodemark.Parse(m.model)
	var want string
	heard := int64(0)
	switch {
	case m.model == "" && c.Rejects(nil, usedAlone) > 0:
		want = rejectedAs(c.Rejects(nil, usedAlone), before)
	case m.model == "":
		after, left := modelnode.Arrive(nil, c, now)
		m.model, want = after.String(), arrivedAs(after, left)
		heard = announced("", after.List)
	case err != nil:
		want = "5 " + modelnode.Version(err)
	case c.Rejects(&before, usedAlone) > 0:
		want = rejectedAs(c.Rejects(&before, usedAlone), before)
	default:
		after, left := modelnode.Arrive(&before, c, now)
		m.model, want = after.String(), arrivedAs(after, left)
		heard = announced(before.List, after.List)
	}
	what := fmt.Sprintf("arrive %+v at %d", c, now)
	note := script.NewCommand("DEL", script.AloneKey)
	if usedAlone {
		note = script.NewCommand("SET", script.AloneKey, "somebody")
	}
	said, err := m.run(note, script.NewCommand("SET", "{seen}:token", "7"), m.byText(a.Command()), script.NewCommand("DEL", "{seen}:token", script.AloneKey))
	if err != nil {
		return what, err
	}
	list := said[2].List
	got := fmt.Sprint(list[0].Num)
	for _, v := range list[1:] {
		got += " " + string(v.Text)
	}
	if len(list) == 7 {
		left, _ := list[1].Number()
		if off := leftIn(want) - int64(left); m.sim == nil && off > 0 && off < time.Second.Microseconds() {
			left += uint64(off)
		}
		got = fmt.Sprint(left, " ", string(list[2].Text), " ", string(list[3].Text), " ", string(list[4].Text), " ", string(list[5].Text), " ", string(list[6].Text))
	}
	if got != want {
		return what, fmt.Errorf("the script replies %s, want %s", got, want)
	}
	return what, m.hears(heard)
}

func arrivedAs(m nodemark.Mark, left int64) string {
	return fmt.Sprint(left, " ", m.Why, " ", m.Longest, " ", m.Print, " ", m.Before, " ", m.Origin)
}

// rejectedAs returns what the script replies if it changes nothing.
func rejectedAs(barrier int, m nodemark.Mark) string {
	switch barrier {
	case 4:
		return fmt.Sprint("4 ", m.List, " ", m.Print, " ", m.Before)
	case 6:
		return "6 somebody"
	}
	return "7"
}

func leftIn(said string) int64 {
	first, _, _ := strings.Cut(said, " ")
	left, _ := strconv.ParseInt(first, 10, 64)
	return left
}

// announced returns how often clients of this single node are notified of a changed list.
func announced(before, after string) int64 {
	if before != after && strings.Contains(after, ",") {
		return 1
	}
	return 0
}

// listens subscribes a second connection to changes of lists.
func (n *scripted) listens(t *testing.T) {
	n.ear = n.another(t)
	if _, err := n.ear.Exchange(resp.Command("SUBSCRIBE", membership.Channel)); err != nil {
		t.Fatal(err)
	}
}

// hears requires that number of messages on the channel of lists.
func (m *markRun) hears(want int64) error {
	if _, err := m.run(script.NewCommand("PUBLISH", membership.Channel, "all")); err != nil {
		return err
	}
	for got := int64(0); ; got++ {
		v, err := m.ear.In.Next()
		if err != nil {
			return err
		}
		if len(v.List) == 3 && string(v.List[2].Text) == "all" {
			if got != want {
				return fmt.Errorf("%d messages on the channel of lists, want %d", got, want)
			}
			return nil
		}
	}
}

// setsMembership makes the mark name another list.
func (m *markRun) setsMembership(now int64) (string, error) {
	from := pick(m.r, m.lists).Fingerprint
	if m.r.IntN(2) == 0 {
		from = ""
	}
	to, before := pick(m.r, m.lists), pick(m.r, []string{"", "", m.lists[1].Fingerprint, m.lists[2].Fingerprint})
	r := modelnode.MembershipChange{Print: to.Fingerprint, List: to.Text, Done: pick(m.r, m.lists).Fingerprint, From: from, Before: before}
	want, heard := "0", int64(0)
	if mark, err := nodemark.Parse(m.model); m.model != "" && err != nil {
		want = "5 " + modelnode.Version(err)
	} else if err == nil {
		after := modelnode.SetMembership(mark, r, now)
		if after.List != mark.List {
			heard = 1
		}
		m.model, want = after.String(), "1 "+after.Print+" "+after.Before
	}
	what := fmt.Sprintf("setMembership %+v", r)
	said, err := m.run(m.byText(membership.SetCommand(r.Print, r.List, r.Done, r.From, r.Before)))
	if err != nil {
		return what, err
	}
	list := said[0].List
	got := fmt.Sprint(list[0].Num)
	for _, v := range list[1:] {
		got += " " + string(v.Text)
	}
	if got != want {
		return what, fmt.Errorf("the script replies %s, want %s", got, want)
	}
	return what, m.hears(heard)
}

// refusalOf decodes a script's reply. On a real server, whose clock runs on, less of a
// quarantine is left than in the model.
func (m *markRun) refusalOf(v resp.Value, left int64) (r modelnode.Refusal) {
	if len(v.List) < 2 || v.List[0].Num == 1 {
		return r
	}
	r = modelnode.Refusal{Barrier: modelnode.Barrier(v.List[0].Num), Why: string(v.List[1].Text)}
	if len(v.List) != 3 {
		return r
	}
	said, _ := v.List[1].Number()
	r.Why, r.Left = string(v.List[2].Text), int64(said)
	if off := left - r.Left; m.sim == nil && off > 0 && off < time.Second.Microseconds() {
		r.Left = left
	}
	return r
}

// becomes changes the server in one way.
func (m *markRun) becomes(now int64) (string, error) {
	switch m.r.IntN(6) {
	case 0:
		m.model = ""
	case 1:
		m.model = pick(m.r, []string{"2 open - -", "1 open", "x"})
	default: // it was declared empty, or has run for a while
		m.model = markOf(func(mark *nodemark.Mark) {
			l := pick(m.r, m.lists)
			mark.Print, mark.List, mark.Run, mark.Replication = l.Fingerprint, l.Text, pick(m.r, runs), replications[0]
			if mark.Origin = pick(m.r, []string{nodemark.Unknown, runs[0][:12], runs[1][:12]}); m.r.IntN(2) == 0 {
				mark.Opens = max(1, now-pick(m.r, steps).Microseconds()+1)
			}
			if m.r.IntN(2) == 0 {
				mark.Why, mark.Longest = "restarted", 5e6
				mark.Durable, mark.ClientDurable = now-pick(m.r, steps).Microseconds(), now-pick(m.r, steps).Microseconds()
			}
		})
	}
	c := script.NewCommand("SET", script.MarkKey, m.model)
	if m.model == "" {
		c = script.NewCommand("DEL", script.MarkKey)
	}
	_, err := m.run(c)
	return "becomes " + cmp.Or(m.model, "empty"), err
}

// grants asks for a free lock in every way in which it can be granted.
func (m *markRun) grants(now int64) (string, error) {
	e := modelnode.Entrance{Print: pick(m.r, m.lists).Fingerprint, Run: mostly(m.r, runs)[:1], Counting: m.r.IntN(5) == 0}
	m.s.Membership.Fingerprint = e.Print
	e.Run = strings.Repeat(e.Run, script.RunPrint)
	want := modelnode.Gate(m.model, e, now)
	what := fmt.Sprintf("grants %+v", e)

	w := &wire{waits: e.Counting}
	if e.Run[0] != '-' {
		w.run = e.Run
	}
	ask := func(q driver.Question) *script.Command {
		c := m.s.Encode(q, nil)
		asks := m.byText(c)
		w.fill(c, asks.Bytes)
		return asks
	}
	m.s.Wall = time.Now
	lease := lining("free", store.CrashSafe)
	next := lining("free", store.CrashSafe)
	heal := lining("healed", store.CrashSafe)
	// The lock is held, whatever the mark is, and is handed to a waiter, which may have
	// another list.
	waiter := e
	waiter.Print = pick(m.r, m.lists).Fingerprint
	m.s.Membership.Fingerprint = waiter.Print
	waits := ask(driver.Question{Op: quorum.Acquire, Lease: next, Waits: true})
	m.s.Membership.Fingerprint = e.Print
	said, err := m.run(ask(driver.Question{Op: quorum.Acquire, Lease: lease}), ask(driver.Question{Op: quorum.Heal, Lease: heal}),
		script.NewCommand("SET", "healed", heal.Owner), m.extends(heal),
		script.NewCommand("SET", "free", lease.Owner), waits, ask(driver.Question{Op: quorum.Release, Lease: lease}), script.NewCommand("GET", "free"),
		script.NewCommand("EVAL", "for _, k in ipairs(redis.call('KEYS', '*')) do if k ~= ARGV[1] then redis.call('DEL', k) end end", "0", script.MarkKey))
	if err != nil {
		return what, err
	}
	for i, v := range said[:2] {
		if got := m.refusalOf(v, want.Left); got != want {
			return what, fmt.Errorf("script %d replies %v, want %+v", i, v, want)
		}
	}
	if _, err := nodemark.Parse(m.model); (m.model != "" && err != nil) != (said[3].List[0].Num == 5) {
		return what, fmt.Errorf("extend replies %v, want 5 only for the mark of another version", said[3])
	}
	barred := modelnode.Gate(m.model, waiter, now)
	if handed := strings.HasPrefix(string(said[7].Text), next.Owner); handed != (want.Barrier == modelnode.None && barred.Barrier == modelnode.None) {
		return what, fmt.Errorf("handed on to a client of list %s: %v, want %+v %+v", waiter.Print, handed, want, barred)
	}
	return what, nil
}

// extends renews a lease.
func (m *markRun) extends(l store.Lease) *script.Command {
	var c script.Command
	m.extend(&c, []store.Lease{l})
	return m.byText(&c)
}

// extend encodes the renewal of leases as the store's encoder does.
func (m *markRun) extend(c *script.Command, leases []store.Lease) {
	e := m.s.Encoder()
	e.Extend(c, leases)
}
