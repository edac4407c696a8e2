package redisstore

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/proof/differential"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/internal/testenv/simnet"
	"github.com/leasehold-dev/leasehold/internal/testenv/simredis"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/conn"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/node"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// The tests here compare the scripts with the rule, and so with the model node that stands
// for them in checkers and simulators.

// The comparison notices each of these changes of a script. Those marked as hidden show only
// on the real server: simredis prints numbers whole where Redis does not, and nothing is
// inspected there. Those marked as timed do not show there, as its clock cannot be set.
func TestScriptsChanged(t *testing.T) {
	sim, real := onSimulated(t), onRedis(t)
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			for name, n := range map[string]*scripted{"Redis": real, "simredis": sim} {
				n.change = c.made(t)
				if n == sim && c.hidden || n == real && c.timed {
					continue
				}
				for _, bundled := range []bool{false, true} {
					n.bundles = bundled
					if n.bundles != (c.of == bundles) && (c.of != both || c.script != script.Extend) {
						continue
					}
					if err := differential.Find(n, 100); err == nil {
						t.Errorf("the comparison does not notice the change on %s, with bundles: %v", name, n.bundles)
					} else {
						t.Logf("on %s, with bundles: %v\n%v", name, n.bundles, err)
					}
				}
			}
		})
	}
}

var changes = []change{
	{name: "acquire takes what others hold", script: script.Acquire,
		old: "if not (held and held ~= value or not held and", new: "if not (not held and"},
	{name: "acquire again draws a new token", script: script.Acquire,
		old: "if held and last then", new: "if false then"},
	{name: "acquire again shortens", script: script.Acquire,
		old: "if call('PTTL', key) < tonumber(ttl) then", new: "if true then"},
	{name: "acquire again does not prolong", script: script.Acquire,
		old: "call('PEXPIRE', key, ttl)", new: ""},
	{name: "acquire sees no tombstone", script: script.Acquire,
		old: "if got[3] then\n      return {2}\n    end\n    local text", new: "local text"},
	{name: "acquire looks at the wrong tombstone", script: script.Acquire,
		old: "if got[3] then\n      return {2}\n    end\n    local text", new: "if got[2] then\n      return {2}\n    end\n    local text"},
	{name: "token not above the last", script: script.Acquire,
		old: "token = last + 1\n", new: "token = last + 0\n"},
	{name: "token equal to the last", script: script.Acquire,
		old: "LEAD or last and token <= last + 0 then", new: "LEAD or last and token < last + 0 then"},
	{name: "token not compared with the last", script: script.Acquire,
		old: "LEAD or last and token <= last + 0 then", new: "LEAD then"},
	{name: "token below the clock", script: script.Acquire,
		old: "if token < now or", new: "if"},
	{name: "clock not the floor", script: script.Acquire,
		old: "math.max(now, math.min(token, now + LEAD))", new: "math.min(token, now + LEAD)"},
	{name: "proposal without a limit", script: script.Acquire,
		old: "token > now + LEAD or", new: ""},
	{name: "proposal not cut", script: script.Acquire,
		old: "math.min(token, now + LEAD)", new: "token"},
	{name: "proposal not used", script: script.Acquire,
		old: "local token, text = proposed + 0, proposed", new: "local token, text = 0, '0'"},
	{name: "token rounded", script: script.Acquire,
		old: "string.format('%.0f', token)", new: "tostring(token)", hidden: true},
	{name: "clock without its microseconds", script: script.Acquire,
		old: "draw(wanted.proposed, last, time[1] * 1000000 + time[2])", new: "draw(wanted.proposed, last, time[1] * 1000000)"},
	{name: "a new owner sees no tombstone", script: script.Acquire,
		old: "not got[1] and not got[3] and", new: "not got[1] and"},
	{name: "a new owner does not see the counter", script: script.Acquire,
		old: "time[2], got[2] and got[2] + 0", new: "time[2], nil"},
	{name: "a new owner's token below the clock", script: script.Acquire,
		old: "if token >= now and", new: "if"},
	{name: "a new owner's token ahead of the clock", script: script.Acquire,
		old: "token <= now + LEAD and", new: ""},
	{name: "a new owner's token not above the last", script: script.Acquire,
		old: "and (not last or token > last) then", new: "then"},
	{name: "counter not written", script: script.Acquire,
		old: "said = try('SET', counter, text, 'PX', LIFE)\n    end", new: "said = {}\n    end"},
	{name: "counter of the same hour not written", script: script.Acquire,
		old: "try('SET', counter, text, 'KEEPTTL')", new: "{}"},
	{name: "counter of the same hour kept for ever", script: script.Acquire,
		old: "try('SET', counter, text, 'KEEPTTL')", new: "try('SET', counter, text)"},
	{name: "counter of another hour keeps its end", script: script.Acquire,
		old: "last < token - 1 and last >= token - token % HOUR and", new: "last < token - 1 and", timed: true},
	{name: "counter far ahead of the clock keeps its end", script: script.Acquire,
		old: "last < token - 1 and last >= token - token % HOUR and", new: "last >= token - token % HOUR and"},
	{name: "first counter not written", script: script.Acquire,
		old: "try('SET', counter, text, 'PX', LIFE, 'NX')", new: "{}"},
	{name: "counter kept for ever", script: script.Acquire,
		old: "said = try('SET', counter, text, 'PX', LIFE)\n    end", new: "said = try('SET', counter, text)\n    end"},
	{name: "first counter kept for ever", script: script.Acquire,
		old: "try('SET', counter, text, 'PX', LIFE, 'NX')", new: "try('SET', counter, text, 'NX')"},
	{name: "lock without a TTL", script: script.Acquire,
		old: "try('SET', key, value, 'PX', ttl, 'NX')", new: "try('SET', key, value, 'NX')"},
	{name: "lock whose counter was lost has no token", script: script.Acquire,
		old: "call('DEL', key)\n    end\n    local said", new: "end\n    local said"},
	{name: "short release of what others hold", script: script.Release,
		old: "if got[1] == value and not got[2] and", new: "if got[1] and not got[2] and"},
	{name: "short release of what leaves a tombstone", script: script.Release,
		old: "and (letter == 100 or letter == 68) then", new: "then"},
	{name: "short release does not delete", script: script.Release,
		old: "call('DEL', key)\n  return 1", new: "return 1"},
	{name: "confirm of what others hold", script: script.Confirm,
		old: "if held ~= value then", new: "if false then"},
	{name: "confirm lowers", script: script.Confirm,
		old: "tonumber(last) < tonumber(token)", new: "true"},
	{name: "confirm does not write", script: script.Confirm,
		old: "call('SET', counter, last, 'PX', LIFE)", new: ""},
	{name: "extend of what others hold", script: script.Extend,
		old: "if got[read + i] ~= args[before + i] then", new: "if not got[read + i] then"},
	{name: "extend writes to what others hold", script: script.Extend, of: bundles,
		old: "if got[read + i] == args[before + i] then", new: "if true then"},
	{name: "extend creates", script: script.Extend, of: single,
		old: "local others\n", new: "for i = 1, n do if not got[read + i] then call('SET', keys[first + i - 1], args[before + i], 'PX', leases.ttl) got[read + i] = args[before + i] end end local others\n"},
	{name: "extend creates many", script: script.Extend, of: bundles,
		old: "local others\n", new: "for i = 1, n do if not got[read + i] then call('SET', keys[first + i - 1], args[before + i], 'PX', leases.ttl) got[read + i] = args[before + i] end end local others\n"},
	{name: "extend shortens", script: script.Extend,
		old: "if call('PTTL', key) < tonumber(ttl) then", new: "if true then"},
	{name: "extend does not prolong", script: script.Extend,
		old: "call('PEXPIRE', key, ttl)", new: ""},
	{name: "extend prolongs the first", script: script.Extend, of: bundles,
		old: "renew(keys[first + i - 1], ", new: "renew(keys[first], "},
	{name: "extend lets the counter expire", script: script.Extend,
		old: "call('PEXPIRE', counter, LIFE)", new: ""},
	{name: "extend keeps the first counter", script: script.Extend, of: bundles,
		old: "keys[first + n + i - 1], leases.ttl)", new: "keys[first + n], leases.ttl)"},
	{name: "extend replies for others with the state of the first", script: script.Extend, of: bundles,
		old: "others[#others + 1] = i\n", new: "others[#others + 1] = #others / 2 + 1\n"},
	{name: "extend names the holder of another lock", script: script.Extend, of: bundles,
		old: "foreign(keys[first + i - 1], got[read + i])", new: "foreign(keys[first], got[read + 1])"},
	{name: "release of what others hold", script: script.Release,
		old: "held == value, {1}", new: "held, {1}"},
	{name: "release does not delete", script: script.Release,
		old: "elseif not waits then\n    call('DEL', key)\n    held = nil\n", new: ""},
	{name: "release leaves no tombstone", script: script.Release,
		old: "(not ours or ending.always == '1')", new: "(ours and ending.always == '1')"},
	{name: "release of what was renewed leaves no tombstone", script: script.Release,
		old: "(not ours or ending.always == '1')", new: "not ours"},
	{name: "release leaves a tombstone for ever", script: script.Release,
		old: "call('SET', tombstone, '', 'PX', life)", new: "call('SET', tombstone, '')"},
	{name: "release deletes, and replies that it did not", script: script.Release,
		old: "{1}, got[2]\n", new: "nil, got[2]\n"},
	{name: "heal takes what others hold", script: script.Heal,
		old: "if held and held ~= value then", new: "if false then"},
	{name: "heal sees no tombstone", script: script.Heal,
		old: "if got[2] then", new: "if false then"},
	{name: "heal shortens", script: script.Heal,
		old: "if call('PTTL', key) < tonumber(ttl) then", new: "if true then"},
	{name: "heal does not prolong", script: script.Heal,
		old: "call('PEXPIRE', key, ttl)", new: ""},
	{name: "heal does nothing", script: script.Heal,
		old: "not call('SET', key, value, 'PX', ttl, 'NX')", new: "false"},
	{name: "heal without a TTL", script: script.Heal,
		old: "call('SET', key, value, 'PX', ttl, 'NX')", new: "call('SET', key, value, 'NX')"},
	{name: "inspect misses the token", script: script.Inspect,
		old: "call('PTTL', KEYS[1]), last", new: "call('PTTL', KEYS[1]), '0'", hidden: true},
}

func TestScriptsOnSimulatedRedis(t *testing.T) { differential.Check(t, onSimulated(t)) }

func TestScriptsOnRedis(t *testing.T) { differential.Check(t, onRedis(t)) }

// The bundle tests do the same with renewals of several leases at once.
func TestBundlesOnSimulatedRedis(t *testing.T) {
	n := onSimulated(t)
	n.bundles = true
	differential.Check(t, n)
}

func TestBundlesOnRedis(t *testing.T) {
	n := onRedis(t)
	n.bundles = true
	differential.Check(t, n)
}

// scripted is one server that gets the store's commands exactly as the store encodes them,
// and whose replies are decoded as the store decodes them, without the quorum and the
// connection between.
type scripted struct {
	s    *node.Shared // only encodes commands
	wire *wire
	dial func() (net.Conn, error)
	// sim is set if the server's clock can be set: it shows now.
	sim *simnet.Host
	now clock.Instant
	// change, if not nil, changes the text of a script.
	change func(text string) string
	// bundles makes renewals include leases that are not held.
	bundles bool
	asked   int // renewals so far
	// lists makes tests that can send several steps as one list.
	lists bool
	ear   *wire
}

// onSimulated runs the scripts under a clock that is set, to the millisecond
// and the microsecond.
func onSimulated(t *testing.T) *scripted {
	n := &scripted{}
	network := &simnet.Network{Clock: func() time.Time { return time.Unix(0, int64(n.now)) }}
	n.sim = network.Start()
	n.sim.With((*simredis.Server).EndPromptly)
	n.dial = func() (net.Conn, error) { return network.Dial(t.Context(), "tcp", n.sim.Addr()) }
	n.connect(t)
	return n
}

// onRedis runs the scripts on a real server, whose clock cannot be set.
func onRedis(t testing.TB) *scripted {
	addr := redistest.Start(t).Addr()
	n := &scripted{dial: func() (net.Conn, error) { return net.Dial("tcp", addr) }}
	n.connect(t)
	return n
}

func (n *scripted) connect(t testing.TB) {
	t.Helper()
	n.s = new(node.Shared)
	n.s.Init(config.Config{Clock: clock.System(), Logger: slog.New(slog.DiscardHandler)})
	n.s.Channel = script.ChannelBegin + "x"
	n.wire = n.another(t)
}

// another opens another connection to the server.
func (n *scripted) another(t testing.TB) *wire {
	t.Helper()
	c, err := n.dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	w := new(wire)
	w.Attach("", c, c)
	return w
}

// wire is a connection, and what a store knows of it when it sends commands.
type wire struct {
	conn.Connection
	canPush bool
	run     string // fingerprint of the server's run ID
	waits   bool   // the client counts a quarantine
}

// fill patches the command c at the end of out, as the store does.
func (w *wire) fill(c *script.Command, out []byte) []byte {
	if c.Script.Does(script.Gated) {
		script.FillGate(out, w.run, w.waits)
	}
	c.FillPlace(out, !w.canPush, "")
	return out
}

func (n *scripted) Traits() differential.Traits {
	return differential.Traits{Node: true, Tombstones: true, Resolution: time.Millisecond, Live: n.sim == nil}
}

func (n *scripted) Begin(now clock.Instant) error {
	if n.now = now; n.sim != nil {
		n.sim.With(func(s *simredis.Server) { s.Load(nil) })
	}
	_, err := n.run(script.NewCommand("FLUSHALL"))
	return err
}

// age shortens the TTL of every key, and moves the ends that places and records have, by an
// amount of time.
const age = `
for _, key in ipairs(redis.call('KEYS', '*')) do
  local left, says = redis.call('PTTL', key), redis.call('MGET', key)[1]
  if says and string.find(key, '}:place:', 1, true) then
    redis.call('SET', key, string.sub(says, 1, 1) .. string.sub(says, 2, 14) - ARGV[1] .. string.sub(says, 15))
    redis.call('PEXPIRE', key, left)
  elseif says and string.find(key, '}:waits', 1, true) then
    redis.call('SET', key, string.sub(says, 1, 13) - ARGV[1] .. ' ' .. string.sub(says, 15, 27) - ARGV[1] .. string.sub(says, 28))
    redis.call('PEXPIRE', key, left)
  elseif string.find(key, '}:ends', 1, true) then
    local ends = redis.call('ZRANGE', key, '0', '-1', 'WITHSCORES')
    for i = 1, #ends, 2 do
      redis.call('ZADD', key, string.format('%.0f', ends[i + 1] - ARGV[1]), ends[i])
    end
  elseif says and string.find(says, '^ [sr]%d') then -- a record
    redis.call('SET', key, (string.gsub(says, '%d+', function(n)
      if #n == 13 and tonumber(n) > 1500000000000 then
        return string.format('%.0f', n - ARGV[1])
      end
    end)))
    redis.call('PEXPIRE', key, left)
  end
  if left >= 0 then
    redis.call('PEXPIRE', key, left - ARGV[1])
  end
end`

func (n *scripted) Pass(d time.Duration) error {
	if n.sim != nil {
		n.now = n.now.Add(d)
		return nil
	}
	_, err := n.run(script.NewCommand("EVAL", age, "0", millis(d)))
	return err
}

func (n *scripted) Clock() (clock.Instant, error) {
	replies, err := n.run(script.NewCommand("TIME"))
	if err != nil {
		return 0, err
	}
	return timeOf(replies[0])
}

func millis(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Millisecond-1)/time.Millisecond), 10)
}

func timeOf(v resp.Value) (clock.Instant, error) {
	if len(v.List) != 2 {
		return 0, fmt.Errorf("TIME: %v", v)
	}
	s, ok1 := v.List[0].Number()
	us, ok2 := v.List[1].Number()
	if !ok1 || !ok2 {
		return 0, fmt.Errorf("TIME: %v", v)
	}
	return clock.Instant(s*1e9 + us*1e3), nil
}

// run sends commands together. A nil reply is no error, and neither is any reply of a
// script.
func (n *scripted) run(commands ...*script.Command) ([]resp.Value, error) {
	replies, err := n.wire.Exchange(script.Bytes(commands...)...)
	if err != nil {
		return nil, err
	}
	for i, v := range replies {
		if v.Kind == '-' {
			return nil, fmt.Errorf("%.60q: %s", commands[i].Bytes, v.Text)
		}
	}
	return replies, nil
}

// byText returns the call with the script's text, which a test may have changed.
func (n *scripted) byText(c *script.Command) *script.Command {
	s := c.Script
	if n.change != nil {
		if text := n.change(s.Text()); text != s.Text() {
			s = script.New(s.Name, text, s.Keys, s.Args)
		}
	}
	again := &script.Command{Script: s, More: c.More, Bytes: c.Bytes} // all hashes have one length
	return &script.Command{Bytes: again.ByText(nil)}
}

var opOf = map[differential.Op]quorum.Op{
	differential.Acquire: quorum.Acquire, differential.Confirm: quorum.Confirm, differential.Extend: quorum.Extend,
	differential.Release: quorum.Release, differential.Bury: quorum.Release,
	differential.BuryRenewed: quorum.Release, differential.Heal: quorum.Heal,
}

func (n *scripted) Do(c differential.Command) (differential.Answer, error) {
	op, ours := opOf[c.Op]
	if !ours {
		return n.stranger(c)
	}
	n.s.Wall = func() time.Time { return time.UnixMicro(int64(c.Token)).Add(-script.ProposalLead) }
	buries := c.Op == differential.Bury || c.Op == differential.BuryRenewed
	r := store.Lease{Name: c.Lock, Owner: c.Owner.ID, Meta: c.Owner.Meta, TTL: c.TTL}
	call := n.s.Encode(driver.Question{Op: op, Lease: r, Token: c.Token, Tombstone: buries, Renewed: c.Op == differential.BuryRenewed}, nil)
	read := func(r script.Reply) (differential.Answer, error) { return answerOf(r.Answer(call.Script)) }
	if n.bundles && op == quorum.Extend {
		call, read = n.bundle(r)
	}
	// Quarantine has tests of its own: here the server has lost nothing.
	open := script.NewCommand("SET", script.MarkKey, openMark)
	replies, err := n.run(open, script.NewCommand("TIME"), n.byText(call), script.NewCommand("TIME"), script.NewCommand("DEL", script.MarkKey))
	if err != nil {
		return differential.Answer{}, err
	}
	before, err1 := timeOf(replies[1])
	after, err2 := timeOf(replies[3])
	ans, err := read(script.ReplyTo(replies[2]))
	ans.Before, ans.After = before, after
	return ans, errors.Join(err, err1, err2)
}

// bundle renews r together with a lease of every lock that is not held, at changing
// positions. Reading the reply returns an error if the answer for one of those is wrong.
func (n *scripted) bundle(r store.Lease) (*script.Command, func(script.Reply) (differential.Answer, error)) {
	var leases []store.Lease
	for _, lock := range append(slices.Clone(differential.Locks), "{", r.Name) {
		leases = append(leases, store.Lease{Name: lock, Owner: "nobody", TTL: r.TTL})
	}
	n.asked++
	here := n.asked % (len(leases) + 1)
	leases = slices.Insert(leases, here, r)
	c, all := n.s.Bundle(leases, nil)
	return c, func(reply script.Reply) (ans differential.Answer, err error) {
		if all != len(leases) {
			return ans, fmt.Errorf("%d of %d leases in one command", all, len(leases))
		}
		usual, others := reply.Answers(c.Script, all)
		each := apart(usual, others, all)
		if ans, err = answerOf(each[here]); err != nil {
			return ans, err
		}
		for i, a := range each {
			var other differential.Answer
			if i == here {
				continue
			} else if other, err = answerOf(a); err != nil {
				return ans, err
			}
			empty := other.Verdict == differential.Nobody
			// Both leases of r's lock get the same answer, unless r holds it.
			if leases[i].Name == r.Name && ans.Verdict != differential.Done && (other.Verdict != ans.Verdict || other.Holder != ans.Holder || (other.Left-ans.Left).Abs() > time.Second) ||
				leases[i].Name == r.Name && ans.Verdict == differential.Done && (other.Verdict != differential.Taken || other.Holder != r.Owner) ||
				leases[i].Name == "{" && !empty || other.Verdict == differential.Done {
				return ans, fmt.Errorf("a lease of the free lock %q gets %+v, while %+v is the answer for %q", leases[i].Name, other, ans, r.Name)
			}
		}
		return ans, nil
	}
}

// apart returns the reply for each of n leases.
func apart(usual driver.Reply, others []driver.Exception, n int) []driver.Reply {
	each := slices.Repeat([]driver.Reply{usual}, n)
	for _, o := range others {
		each[o.Lease] = o.Reply
	}
	return each
}

// answerOf returns the answer as the quorum receives it.
func answerOf(a driver.Reply) (ans differential.Answer, err error) {
	switch {
	case a.Kind == quorum.Yes:
		ans = differential.Answer{Verdict: differential.Done, Token: a.Token}
	case a.Kind == quorum.No && a.Report.Outcome == store.Taken:
		ans = differential.Answer{Verdict: differential.Taken, Holder: a.Report.Holder.Owner, Left: remaining(a.Report.ExpiresIn)}
	case a.Kind == quorum.Absent && a.Report.Outcome == store.Absent:
		ans.Verdict = differential.Nobody
	case a.Kind == quorum.No && errors.Is(a.Report.Err, script.ErrReleasedOwner):
		ans.Verdict = differential.Buried
	default:
		err = fmt.Errorf("unexpected answer: kind %d, %v", a.Kind, a.Report)
	}
	return ans, err
}

func remaining(d time.Duration) time.Duration {
	if d < 0 {
		return differential.Never
	}
	return d
}

// stranger does to a lock what other programs or a loss of data do.
func (n *scripted) stranger(c differential.Command) (differential.Answer, error) {
	words := map[differential.Op][]string{
		differential.StrangerSets:    {"SET", c.Lock, differential.Stranger, "NX"},
		differential.StrangerDeletes: {"DEL", c.Lock},
		differential.LoseCounter:     {"DEL", keysOf(c.Lock)[1]},
		differential.LoseAll:         {"FLUSHALL"},
	}[c.Op]
	if c.Op == differential.StrangerSets && c.TTL > 0 {
		words = append(words, "PX", millis(c.TTL))
	}
	replies, err := n.run(script.NewCommand(words...))
	if err != nil {
		return differential.Answer{}, err
	}
	if replies[0].Null {
		return differential.Answer{Verdict: differential.Taken}, nil
	}
	return differential.Answer{Verdict: differential.Done}, nil
}

// Look reads the keys, and on the real server, where that costs little, also the reply of
// the inspect script. It fails if there is a key that no lock has.
func (n *scripted) Look(lock string) (differential.State, error) {
	commands := []*script.Command{script.NewCommand("KEYS", "*")}
	for _, key := range keysOf(lock) {
		commands = append(commands, script.NewCommand("GET", key), script.NewCommand("PTTL", key))
	}
	if n.sim == nil {
		commands = append(commands, n.byText(n.s.InspectCommand(lock)))
	}
	replies, err := n.run(commands...)
	if err != nil {
		return differential.State{}, err
	}
	for _, v := range replies[0].List {
		key := string(v.Text)
		if !slices.ContainsFunc(differential.Locks, func(l string) bool { return slices.Contains(keysOf(l), key) }) {
			return differential.State{}, fmt.Errorf("there is a key %q that no lock has", key)
		}
	}
	state := differential.State{Tombstones: map[string]time.Duration{}}
	for i := range keysOf(lock) {
		value, left := replies[1+2*i], replies[2+2*i]
		if value.Null {
			continue
		}
		text := string(value.Text)
		life := remaining(time.Duration(left.Num) * time.Millisecond)
		switch i {
		case 0:
			state.Holder, state.Left = holderOf(text), life
		case 1:
			state.TokenLeft = life
			if state.Token, err = strconv.ParseUint(text, 10, 64); err != nil {
				return state, err
			}
		default:
			state.Tombstones[differential.Owners[i-2].ID] = life
		}
	}
	if n.sim == nil {
		err = n.inspected(script.ReplyTo(replies[len(replies)-1]), state)
	}
	return state, err
}

// keysOf returns all keys of a lock: its own, its counter and its tombstones.
func keysOf(lock string) []string {
	keys := []string{lock, "{" + lock + "}:token"}
	for _, o := range differential.Owners {
		keys = append(keys, "{"+lock+"}:gone:"+o.ID)
	}
	return keys
}

// holderOf returns the owner whose value it is.
func holderOf(value string) string {
	for _, o := range differential.Owners {
		if value == o.ID+" "+cmp.Or(o.Meta, script.NoMeta) {
			return o.ID
		}
	}
	if value == differential.Stranger {
		return value
	}
	return fmt.Sprintf("an unknown owner (%q)", value)
}

// inspected returns an error if the inspect script has found another state.
func (n *scripted) inspected(r script.Reply, want differential.State) error {
	said, token, _ := r.Look()
	outcome := store.Taken
	if want.Holder == "" {
		outcome, want.Token = store.Absent, 0
	}
	if want.Holder == differential.Stranger { // the counter does not belong to its lease
		want.Token = 0
	}
	off := (remaining(said.ExpiresIn) - want.Left).Round(time.Minute) // the clock runs
	if said.Outcome != outcome || said.Holder.Owner != want.Holder || uint64(token) != want.Token || off != 0 {
		return fmt.Errorf("the inspect script finds %v for %v, token %d, and the keys have %v", said, said.ExpiresIn, token, want)
	}
	return nil
}
