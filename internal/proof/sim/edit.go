package sim

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// A change is one mistake in the scripts: what stands there, and what would be there
// instead.
type change struct{ old, new string }

// changes are mistakes that take a mechanism out of the scripts.
var changes = map[string][]change{
	"quarantine": {{"if now < tonumber(opens) then", "if false then"}},
	"quarantine-long-enough": {{"if now < tonumber(opens) then",
		fmt.Sprintf("if now < tonumber(opens) - %d then", (4500 * time.Millisecond).Microseconds())}},
	"node-looks-at-lists": {
		{"if print ~= '-' and print ~= prints and print ~= one and print ~= other then", "if false then"},
		{"if got and got ~= print and got ~= '-' and got ~= string.sub(print, 1, 12) and got ~= string.sub(print, 14) then", "if false then"},
	},
	"node-clock-floor": {
		{"if token < now or token > now + LEAD or last and", "if token < 1 or token > now + LEAD or last and"},
		{"token = math.max(now, math.min(token, now + LEAD))", "token = math.max(1, math.min(token, now + LEAD))"},
	},
	"node-tombstones":             {{"if ARGV[2] ~= '0' and (not ours or ARGV[3] == '1') then", "if false then"}},
	"node-confirms-owner-only":    {{"if held ~= ARGV[1] then\n  return {0, held or '', redisstore.call('PTTL', KEYS[1])}\nend\nlocal counter", "local counter"}},
	"node-never-shortens":         {{"if call('PTTL', KEYS[i]) < least then", "if true then"}},
	"node-heals-after-quarantine": {{"local refusal = gate(KEYS[3], ARGV[3], ARGV[4], time[1] * 1000000 + time[2])", "local refusal"}},
	"node-hands-after-quarantine": {{"if gate(KEYS[3], ARGV[6], ARGV[7], now) then", "if false then"}},
	"node-never-creates": {{"held = {call('GET', KEYS[1])}",
		"call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) held = {call('GET', KEYS[1])}"}},
	"node-skips-the-dead": {{"'PUBLISH', channel, message) ~= 0", "'PUBLISH', channel, message) ~= -1"}},
}

// idleOnly are those that show only in how long a lock stays nobody's.
var idleOnly = map[string]bool{"node-skips-the-dead": true, "redis-requeue": true, "redis-ask-what-was-missed": true}

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
