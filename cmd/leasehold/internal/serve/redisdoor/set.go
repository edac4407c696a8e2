package redisdoor

import (
	"strings"
	"time"
)

// planOfSet returns the plan of SET key value with options.
func planOfSet(words []string) (plan, *reply) {
	p := plan{name: words[0], value: words[1], prefix: -1, done: ok, free: nul, other: nul}
	var condition string
	var timed bool
	for i := 2; i < len(words); i++ {
		option := strings.ToUpper(words[i])
		takesWord := option == "IFEQ" || option == "EX" || option == "PX" || option == "EXAT" || option == "PXAT"
		if takesWord {
			if i++; i == len(words) {
				return refuse("ERR syntax error: " + option + " needs a value")
			}
		}
		switch option {
		case "NX", "XX", "IFEQ":
			if condition != "" {
				return refuse("ERR syntax error: SET takes one of NX, XX and IFEQ")
			}
			condition = option
			if option == "IFEQ" && words[i] != p.value {
				return refuse("ERR the value of a lock cannot be changed: it is the owner of the lease. Give SET the same value as IFEQ to extend it")
			}
		case "GET":
			p.tells = true
		case "EX", "PX", "EXAT", "PXAT":
			if timed {
				return refuse("ERR syntax error: SET takes one of EX, PX, EXAT and PXAT")
			}
			timed = true
			unit := time.Millisecond
			if option[0] == 'E' {
				unit = time.Second
			}
			span, wrong := milliseconds(words[i], unit)
			if wrong != "" {
				return refuse(wrong)
			}
			if p.ttl = span; strings.HasSuffix(option, "AT") {
				p.ttl, p.until = 0, span.Milliseconds()
			}
		default:
			return refuse("ERR syntax error: this server knows no option " + option + " of SET. " + asLock)
		}
	}
	switch {
	case condition == "":
		return refuse("ERR SET without NX would take the lock from its holder. " + asLock)
	case !timed:
		return refuse("ERR this lock would last for ever if its holder died: say with PX how many milliseconds it lasts, as a timeout of the lock in most libraries")
	case condition == "NX":
		p.verb = acquire
		if p.tells { // what was there before: nothing
			p.done = nul
		}
	case p.tells:
		return refuse("ERR this server knows GET as an option of SET only beside NX")
	default:
		p.verb = extend
		if condition == "XX" {
			p.other = failed("ERR another client holds the lock: SET XX would take it from its holder")
		}
	}
	return p, nil
}
