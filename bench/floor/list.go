package floor

import (
	"strconv"

	"github.com/leasehold-dev/leasehold/bench/resp"
)

// mostSteps is how many steps a list has at most, as in the lists of Leasehold.
const mostSteps = 16

// listScript does many steps: it acquires locks and draws a number for each, and releases
// locks. All keys are read at once, and all released locks are deleted at once. A list must
// not have the same lock twice.
//
// KEYS: for each step the lock, and to acquire it also its counter
// ARGV: for each step the value, and the TTL, which is empty to release the lock
const listScript = `local said, gone, k, had = {}, {}, 1, redis.call('MGET', unpack(KEYS))
for i = 1, #ARGV, 2 do
  local n, lock, value, ttl = #said + 1, KEYS[k], ARGV[i], ARGV[i + 1]
  said[n] = 0
  if ttl == '' then
    if had[k] == value then
      gone[#gone + 1], said[n] = lock, 1
    end
    k = k + 1
  else
    if not had[k] and not redis.pcall('SET', lock, value, 'PX', ttl).err then
      said[n] = redis.call('INCR', KEYS[k + 1])
    end
    k = k + 2
  end
end
if gone[1] then
  redis.call('DEL', unpack(gone))
end
return said`

var listHash = hash(listScript)

// step is a step of a list, in wire format.
type step struct {
	keys, args []byte
	counted    bool // it has a counter
}

// list is a call of listScript to which steps are added.
type list struct {
	steps, nkeys int
	keys, args   []byte
}

// add adds a step and returns how many there are.
func (l *list) add(s step) int {
	l.keys, l.args = append(l.keys, s.keys...), append(l.args, s.args...)
	l.steps++
	if l.nkeys++; s.counted {
		l.nkeys++
	}
	return l.steps
}

// end appends the call to b, and empties the list.
func (l *list) end(b []byte) []byte {
	b = append(b, '*')
	b = strconv.AppendInt(b, int64(3+l.nkeys+2*l.steps), 10)
	b = append(b, "\r\n"...)
	b = resp.AppendArgs(b, "EVALSHA", listHash, strconv.Itoa(l.nkeys))
	b = append(append(b, l.keys...), l.args...)
	*l = list{keys: l.keys[:0], args: l.args[:0]}
	return b
}
