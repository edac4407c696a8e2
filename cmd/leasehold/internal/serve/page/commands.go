package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold/fence"
)

// command is what does in a shell what a view does.
type command struct{ What, Text string }

// baseURL is the address of the server as the client of r has it.
func baseURL(r *http.Request, prefix string) string {
	scheme := "http"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	return scheme + "://" + r.Host + prefix
}

// quote writes s as one word of a POSIX shell. Characters that a terminal could act on, or that
// people cannot see, are written as escapes ($'...').
func quote(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !(r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) || strings.ContainsRune("-_./:@%+,=", r))
	}) < 0 {
		return s
	}
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) }) < 0 {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\'' || r == '\\':
			b.WriteString(`\` + s[i:i+n])
		case r == utf8.RuneError && n == 1, !unicode.IsGraphic(r):
			for _, c := range []byte(s[i : i+n]) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	b.WriteString("'")
	return b.String()
}

// lockURL is the address of a lock in the API.
func lockURL(base, name string) string { return base + "/v1/locks/" + url.PathEscape(name) }

// named ends a command with the name of a lock, which may look like a flag.
func named(name string) string {
	if strings.HasPrefix(name, "-") {
		return "-- " + quote(name)
	}
	return quote(name)
}

// listCommands list the locks under a prefix.
func listCommands(base, prefix string) []command {
	arg, query := "", ""
	if prefix != "" {
		arg, query = " "+named(prefix), "?prefix="+url.QueryEscape(prefix)
	}
	return []command{
		{"List them", "leasehold ls --store " + quote(base) + arg},
		{"", "curl " + quote(base+"/v1/locks"+query)},
	}
}

// lockCommands show, watch and hold a lock.
func lockCommands(base, name string) []command {
	return []command{
		{"Show it", "leasehold show --store " + quote(base) + " " + named(name)},
		{"", "curl " + quote(lockURL(base, name))},
		{"Watch it", "leasehold watch --store " + quote(base) + " " + named(name)},
		{"", "curl -N " + quote(base+"/v1/events?prefix="+url.QueryEscape(name))},
	}
}

// holdCommands hold a lock.
func holdCommands(base, name string) []command {
	return []command{
		{"Hold a lock", "leasehold run --store " + quote(base) + " " + named(name) + " -- sleep 60"},
		{"", "curl -N -d '{}' " + quote(lockURL(base, name)+"/hold")},
	}
}

// breakCommands break a lease.
func breakCommands(base, name, owner string, token fence.Token, reason string, now bool) []command {
	if reason == "" {
		reason = "REASON"
	}
	flags := " --token " + token.String() + " --reason " + quote(reason)
	body := map[string]any{"token": token, "reason": reason}
	if owner != "" {
		flags += " --owner " + quote(owner)
		body["owner"] = owner
	}
	if now {
		flags += " --now"
		body["now"] = true
	}
	b, err := json.Marshal(body)
	if err != nil {
		panic(err) // strings and numbers
	}
	return []command{
		{"Break it", "leasehold break --store " + quote(base) + flags + " " + named(name)},
		{"", "curl -d " + quote(string(b)) + " " + quote(lockURL(base, name)+"/break")},
	}
}
