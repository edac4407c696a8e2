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
		fmt.Sprintf("local time = call('TIME') if mark.state ~= 'open' and mark.opens - %d > time[1] * 1000000 + time[2] then", (4500 * time.Millisecond).Microseconds())},
		{"elseif state == 'wait' and mark.why ~= 'declared' then", "elseif false then"}},
	"node-looks-at-lists": {
		{"if mark.print ~= '-' and mark.print ~= print and mark.print ~= string.sub(print, 1, 12) and mark.print ~= string.sub(print, 14) then", "if false then"},
		{"if got and got ~= print and got ~= '-' and got ~= string.sub(print, 1, 12) and got ~= string.sub(print, 14) then", "if false then"},
	},
	"node-hands-to-its-list": {{"if list and list ~= step.print then", "if false then"}},
	"node-clock-floor": {
		{"if token < now or token > now + LEAD or last and", "if token < 1 or token > now + LEAD or last and"},
		{"token = math.max(now, math.min(token, now + LEAD))", "token = math.max(1, math.min(token, now + LEAD))"},
	},
	"node-tombstones":             {{"if life ~= '0' and (not ours or always == '1') then", "if false then"}, {"if life ~= '0' and (not ours or ending.always == '1') then", "if false then"}},
	"node-confirms-owner-only":    {{"value, token)\n  if held ~= value then", "value, token)\n  if false then"}},
	"node-raises-counter":         {{"    last = token\n    call('SET', counter, last, 'PX', LIFE)\n", "    last = token\n"}},
	"node-never-shortens":         {{"local function renew(key, counter, ttl)\n  if call('PTTL', key) < tonumber(ttl) then", "local function renew(key, counter, ttl)\n  if true then"}},
	"node-heals-after-quarantine": {{"local refusal = gate(mark, wanted)", "local refusal"}},
	"node-hands-after-quarantine": {{"if step.refusal then\n        well, done", "if false then\n        well, done"}},
	"node-never-creates": {{"local others\n",
		"for i = 1, n do if not got[read + i] then call('SET', keys[first + i - 1], args[before + i], 'PX', leases.ttl) got[read + i] = args[before + i] end end local others\n"}},
	"node-knows-its-run": {
		{"return {3, '1', 'replaced'} -- the mark", "mark.run = '-' -- the mark"},
		{"elseif mark.run ~= client.run then", "elseif false then"},
	},
	"node-prolongs-what-it-repeats": {{"      if call('PTTL', key) < tonumber(ttl) then\n        call('PEXPIRE', key, ttl)\n      end\n      return last", "      return last"}},
	"node-hands-for-the-place":      {{"math.max(1, ends - step.ms)", "math.max(1, ends - 500 - step.ms)"}},
	"node-extends-its-owner":        {{"    if got[read + i] ~= args[before + i] then", "    if not got[read + i] then"}},
	"kinds-never-shorten":           {{"if ends > (call('ZSCORE', record.ends, member) or 0) + 0 then", "if true then ends = ends - 300"}},
	"kinds-leave-room":              {{"return record.limit - record.used", "return record.limit"}},
	"kinds-differ-in-slots":         {{"  record.bits = bits\n", ""}},
	"kinds-keep-sums":               {{"record.used = record.used - h.weight\n", ""}},
	"kinds-keep-ends":               {{"if h and holdMember(h) == members[i] then", "if false then"}},
	"kinds-readers-draw":            {{"if not shares or record.used == 0 or", "if not shares or not token or"}},
	"kinds-count-tokens":            {{"  end\n  return text\nend", "  end\n  return '7'\nend"}},
	"kinds-renew-their-slots":       {{"string.byte(slots) == 61 and h.slots ~= string.sub(slots, 2) and h.broken ~= '1' and not refusal then", "false then"}},
	"kinds-hand-after-quarantine":   {{"if record and waits and not step.refusal then", "if record and waits then"}},
	"kinds-are-handed-on":           {{"if record and waits and not step.refusal", "if false"}},
	"node-skips-the-dead":           {{"'PUBLISH', channel, message) ~= 0", "'PUBLISH', channel, message) ~= -1"}},
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
