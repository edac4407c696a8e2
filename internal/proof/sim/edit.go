package sim

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// A change is one mistake in the scripts: a text and its replacement.
type change struct{ old, new string }

// changes are mistakes that take a mechanism out of the scripts.
var changes = map[string][]change{
	"quarantine": {{"mark.state = over and 'open' or 'shut'", "mark.state = 'open'"}, {"if mark.state ~= 'open' then", "if false then"}},
	"quarantine-long-enough": {{"if mark.state ~= 'open' then",
		fmt.Sprintf("if mark.state ~= 'open' and mark.opens - %d > now then", (4500 * time.Millisecond).Microseconds())},
		{"elseif counting == '1' and mark.why ~= 'declared' then", "elseif false then"}},
	"node-looks-at-lists": {
		{"if mark.print ~= '-' and mark.print ~= print and mark.print ~= string.sub(print, 1, 12) and mark.print ~= string.sub(print, 14) then", "if false then"},
		{"if got and got ~= print and got ~= '-' and got ~= string.sub(print, 1, 12) and got ~= string.sub(print, 14) then", "if false then"},
	},
	"node-hands-to-its-list": {{"if list and list ~= print then", "if false then"}},
	"node-clock-floor": {
		{"if token < now or token > now + LEAD or last and", "if token < 1 or token > now + LEAD or last and"},
		{"token = math.max(now, math.min(token, now + LEAD))", "token = math.max(1, math.min(token, now + LEAD))"},
	},
	"node-tombstones":             {{"if ARGV[2] ~= '0' and (not ours or string.byte(ARGV[3]) == 49) then", "if false then"}},
	"node-confirms-owner-only":    {{"if held ~= ARGV[1] then\n  return {0, held or '', redis.call('PTTL', KEYS[1])}\nend\nlocal token", "local token"}},
	"node-never-shortens":         {{"if call('PTTL', KEYS[i]) < least then", "if true then"}},
	"node-heals-after-quarantine": {{"local refusal = gate(KEYS[3], ARGV[3], ARGV[4], ARGV[5], time[1] * 1000000 + time[2])", "local refusal"}},
	"node-hands-after-quarantine": {{"if gate(KEYS[3], print, run, counting, now) then", "if false then"}},
	"node-never-creates": {{"held = {call('GET', KEYS[1])}",
		"call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) held = {call('GET', KEYS[1])}"}},
	"node-knows-its-run": {
		{"return {3, '1', 'replaced'} -- the mark", "mark.run = '-' -- the mark"},
		{"elseif mark.run ~= client.run then", "elseif false then"},
	},
	"node-skips-the-dead": {{"'PUBLISH', channel, message) ~= 0", "'PUBLISH', channel, message) ~= -1"}},
}

// without is a Switches.Edit that makes these mistakes.
func without(names ...string) func(string) string {
	var pairs []string
	for _, n := range names {
		for _, c := range changes[n] {
			pairs = append(pairs, c.old, c.new)
		}
	}
	r := strings.NewReplacer(pairs...)
	var edited sync.Map
	return func(text string) string {
		if e, ok := edited.Load(text); ok {
			return e.(string)
		}
		e := r.Replace(text)
		edited.Store(text, e)
		return e
	}
}
