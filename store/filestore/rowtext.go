package filestore

import (
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
)

// Rows are JSON. Almost all are of one form: a lock of plain ASCII descriptions, without slots,
// attempts, tombstones or breaks. These are written and read here, in the exact order and spelling of
// encoding/json. All others, and whatever differs in a byte, are left to encoding/json. With 15
// waiters, it takes ten times as long to write and to read a row (BenchmarkRow).

// plainText returns r in JSON. ok is false if it is not of the usual form.
func (r row) plainText() (_ string, ok bool) {
	if r.Was != 0 || len(r.Tombstones) > 0 || r.Broken != nil {
		return "", false
	}
	w := &rowWriter{text: make([]byte, 0, 128+256*(len(r.Holds)+len(r.Queue)))}
	w.number(`{"spec":{"limit":`, r.Spec.Limit)
	if r.Spec.Shared {
		w.put(`,"shared":true`)
	}
	w.put(`}`)
	for i, h := range r.Holds {
		w.list(i, `,"holds":[`)
		w.hold(h)
	}
	w.endList(len(r.Holds))
	for i, p := range r.Queue {
		w.list(i, `,"line":[`)
		w.place(p)
	}
	w.endList(len(r.Queue))
	w.put(`,"token":`)
	w.text = strconv.AppendUint(w.text, uint64(r.Token), 10)
	told := 0
	for _, p := range r.Queue {
		if one, found := r.Waiters[p.Owner]; found {
			w.list(told, `,"waiters":{`)
			told++
			w.waiter(p.Owner, one)
		}
	}
	if told > 0 {
		w.put(`}`)
	}
	w.put(`}`)
	return string(w.text), !w.unusual && told == len(r.Waiters)
}

// rowWriter appends to text.
type rowWriter struct {
	text    []byte
	unusual bool
}

func (w *rowWriter) put(s string) { w.text = append(w.text, s...) }

func (w *rowWriter) number(before string, n int64) {
	w.put(before)
	w.text = strconv.AppendInt(w.text, n, 10)
}

func (w *rowWriter) optional(before string, n int64) {
	if n != 0 {
		w.number(before, n)
	}
}

// list begins the i-th element of a list that begins so.
func (w *rowWriter) list(i int, begin string) {
	if i > 0 {
		begin = ","
	}
	w.put(begin)
}

func (w *rowWriter) endList(n int) {
	if n > 0 {
		w.put(`]`)
	}
}

func (w *rowWriter) string(before, s string) {
	w.put(before)
	w.text = append(w.text, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			w.text = append(w.text, '\\', c)
		case !plain(c):
			w.unusual = true
			return
		default:
			w.text = append(w.text, c)
		}
	}
	w.text = append(w.text, '"')
}

// plain reports whether encoding/json writes c as it is, except for the quote and the backslash.
func plain(c byte) bool { return ' ' <= c && c < 0x7f && c != '<' && c != '>' && c != '&' }

func (w *rowWriter) hold(h rule.Hold) {
	w.unusual = w.unusual || h.Slots != "" || h.Made != "" || h.Broken
	w.string(`{"owner":`, h.Owner)
	if h.Meta != "" {
		w.string(`,"meta":`, h.Meta)
	}
	w.number(`,"weight":`, h.Weight)
	w.number(`,"count":`, h.Count)
	w.optional(`,"slot":`, h.Slot)
	w.put(`,"token":`)
	w.text = strconv.AppendUint(w.text, uint64(h.Token), 10)
	w.number(`,"expiry":`, int64(h.Expiry))
	w.optional(`,"granted":`, int64(h.Granted))
	w.put(`}`)
}

func (w *rowWriter) place(p rule.Place) {
	w.unusual = w.unusual || p.Barge || p.Attempt != "" || p.Numbered || p.Slots != "" || p.Exact || p.Ticket != 0
	w.string(`{"owner":`, p.Owner)
	if p.Meta != "" {
		w.string(`,"meta":`, p.Meta)
	}
	w.number(`,"weight":`, p.Weight)
	w.number(`,"expiry":`, int64(p.Expiry))
	w.put(`}`)
}

func (w *rowWriter) waiter(owner string, one waiter) {
	w.string(``, owner)
	w.string(`:{"socket":`, one.Socket)
	w.string(`,"wait":`, one.Wait)
	w.put(`}`)
}

// parsePlain reads what plainText has written. ok is false if text is anything else.
func parsePlain(text []byte) (r row, ok bool) {
	s := &rowReader{rest: string(text)}
	s.must(`{"spec":{"limit":`)
	r.Spec.Limit = s.number()
	r.Spec.Shared = s.next(`,"shared":true`)
	s.must(`}`)
	if s.next(`,"holds":[`) {
		for more := true; more; more = s.next(`,`) {
			r.Holds = append(r.Holds, s.hold())
		}
		s.must(`]`)
	}
	if s.next(`,"line":[`) {
		for more := true; more; more = s.next(`,`) {
			r.Queue = append(r.Queue, s.place())
		}
		s.must(`]`)
	}
	s.must(`,"token":`)
	r.Token = fence.Token(s.number())
	if s.next(`,"waiters":{`) {
		for more := true; more; more = s.next(`,`) {
			owner := s.string()
			if _, twice := r.Waiters[owner]; twice {
				return row{}, false
			}
			s.must(`:{"socket":`)
			one := waiter{Socket: s.string()}
			s.must(`,"wait":`)
			one.Wait = s.string()
			s.must(`}`)
			r.told(owner, one)
		}
		s.must(`}`)
	}
	s.must(`}`)
	if s.unusual || s.rest != "" {
		return row{}, false
	}
	return r, true
}

// rowReader reads from the beginning of rest. Once unusual is set, rest is empty and what it returns
// means nothing.
type rowReader struct {
	rest    string
	unusual bool
}

func (s *rowReader) fail() { s.rest, s.unusual = "", true }

// next skips word, if it comes next.
func (s *rowReader) next(word string) (found bool) {
	s.rest, found = strings.CutPrefix(s.rest, word)
	return found
}

func (s *rowReader) must(word string) {
	if !s.next(word) {
		s.fail()
	}
}

// number reads a number of at most 18 digits, which fits into all types.
func (s *rowReader) number() (n int64) {
	i := 0
	for ; i < len(s.rest) && '0' <= s.rest[i] && s.rest[i] <= '9'; i++ {
		n = n*10 + int64(s.rest[i]-'0')
		if i == 18 {
			s.fail()
			return 0
		}
	}
	if i == 0 || i > 1 && s.rest[0] == '0' {
		s.fail()
		return 0
	}
	s.rest = s.rest[i:]
	return n
}

// optional is number after word, or 0 if word does not come next.
func (s *rowReader) optional(word string) int64 {
	if !s.next(word) {
		return 0
	}
	return s.number()
}

func (s *rowReader) string() string {
	s.must(`"`)
	escapes := 0
	for i := 0; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case c == '"':
			found := s.rest[:i]
			s.rest = s.rest[i+1:]
			if escapes > 0 {
				found = unescaped(found, escapes)
			}
			return found
		case c == '\\':
			if i++; i == len(s.rest) || s.rest[i] != '"' && s.rest[i] != '\\' {
				s.fail()
				return ""
			}
			escapes++
		case !plain(c):
			s.fail()
			return ""
		}
	}
	s.fail()
	return ""
}

// unescaped returns text without the backslashes that quote the next byte, of which there are n.
func unescaped(text string, n int) string {
	var b strings.Builder
	b.Grow(len(text) - n)
	for ; n > 0; n-- {
		i := strings.IndexByte(text, '\\')
		b.WriteString(text[:i])
		b.WriteByte(text[i+1])
		text = text[i+2:]
	}
	b.WriteString(text)
	return b.String()
}

func (s *rowReader) hold() (h rule.Hold) {
	s.must(`{"owner":`)
	h.Owner = s.string()
	if s.next(`,"meta":`) {
		h.Meta = s.string()
	}
	s.must(`,"weight":`)
	h.Weight = s.number()
	s.must(`,"count":`)
	h.Count = s.number()
	h.Slot = s.optional(`,"slot":`)
	s.must(`,"token":`)
	h.Token = fence.Token(s.number())
	s.must(`,"expiry":`)
	h.Expiry = clock.Instant(s.number())
	h.Granted = clock.Instant(s.optional(`,"granted":`))
	s.must(`}`)
	return h
}

func (s *rowReader) place() (p rule.Place) {
	s.must(`{"owner":`)
	p.Owner = s.string()
	if s.next(`,"meta":`) {
		p.Meta = s.string()
	}
	s.must(`,"weight":`)
	p.Weight = s.number()
	s.must(`,"expiry":`)
	p.Expiry = clock.Instant(s.number())
	s.must(`}`)
	return p
}
