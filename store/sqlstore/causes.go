package sqlstore

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// attempt is one try to connect that a driver's error tells of.
type attempt struct {
	address string // empty if there was none, as if a name could not be resolved
	cause   string
}

var (
	// attemptAt is a line of pgx about one try.
	attemptAt = regexp.MustCompile(`^(\S+) \([^)]*\): (.*)$`)
	// dialed is what package net says of a connection that was not made.
	dialed = regexp.MustCompile(`^dial \w+ (\S+): (?:connect: )?(.*)$`)
	// resolving is what it says of a name that was not resolved. The server that was asked is of
	// no use to a reader.
	resolving = regexp.MustCompile(`lookup (\S+)(?: on \S+)?: (.*)$`)
	// inOrder are the words that drivers put before the server's own, in the order in which they
	// do.
	inOrder     = []string{"dial error: ", "tls error: ", "failed SASL auth: ", "server error: ", "hostname resolving error: ", "FATAL: ", "ERROR: "}
	sqlStateEnd = regexp.MustCompile(` \(SQLSTATE \w{5}\)$`)
	noPassword  = regexp.MustCompile(`^password authentication failed for user (.*)$`)
)

// refusedTLS is what pgx says before it tries again without TLS, if the URL lets it.
const refusedTLS = "server refused TLS connection"

// attemptsOf returns the tries that the text of a driver's error tells of. It is empty if the text
// is about something else.
func attemptsOf(text string) []attempt {
	if at := dialed.FindStringSubmatch(text); at != nil { // go-sql-driver/mysql
		return []attempt{{at[1], plainCause(text)}}
	}
	rest, ok := strings.CutPrefix(text, "failed to connect to `") // pgx
	if !ok {
		return nil
	}
	_, rest, ok = strings.Cut(rest, "`:")
	if !ok {
		return nil
	}
	var all []attempt
	for line := range strings.Lines(rest) {
		one := attempt{cause: strings.TrimSpace(line)}
		if at := attemptAt.FindStringSubmatch(one.cause); at != nil {
			one.address, one.cause = at[1], at[2]
		}
		if one.cause = plainCause(one.cause); one.cause != "" && !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(one attempt) bool {
		return one.cause == refusedTLS && slices.ContainsFunc(all, func(o attempt) bool { return o.address == one.address && o.cause != refusedTLS })
	})
}

// plainCause returns the server's or the system's own words, without those of the driver.
func plainCause(s string) string {
	for _, before := range inOrder {
		s = strings.TrimPrefix(s, before)
	}
	s = strings.TrimSuffix(sqlStateEnd.ReplaceAllString(s, ""), ": %!w(<nil>)")
	if at := dialed.FindStringSubmatch(s); at != nil {
		s = at[2]
	}
	if of := resolving.FindStringSubmatch(s); of != nil {
		s = of[1] + ": " + of[2]
	}
	if of := noPassword.FindStringSubmatch(s); of != nil {
		s = "password refused for user " + strings.Trim(of[1], `"`)
	}
	return s
}

// begins is the address that a text of causeOf about one try begins with.
var begins = regexp.MustCompile(`^([\w.-]+:\d+|\[[\w:.%]+\]:\d+|/\S+): ([^;]*)$`)

// addressOf returns the address of the only server that was tried, and what is wrong with it.
func addressOf(text string) (address, cause string, ok bool) {
	at := begins.FindStringSubmatch(text)
	if at == nil {
		return "", "", false
	}
	return at[1], at[2], true
}

// said is an error in other words.
type said struct {
	text string
	err  error
}

func (e said) Error() string { return e.text }
func (e said) Unwrap() error { return e.err }

// causeOf returns the text of an error of a driver for people.
func causeOf(text string) string {
	if all := attemptsOf(text); len(all) > 0 {
		var lines []string
		for _, one := range all {
			if one.address != "" {
				one.cause = one.address + ": " + one.cause
			}
			lines = append(lines, one.cause)
		}
		return strings.Join(lines, "; ")
	}
	if says := serverSays.FindStringSubmatch(text); says != nil { // go-sql-driver/mysql
		return fmt.Sprintf("%s (error %s)", text[len(says[0]):], says[1])
	}
	return plainCause(text)
}
