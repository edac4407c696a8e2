package sim

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A client sends what several goroutines want at one time as one list of steps, in an order
// that nobody can repeat. So a list is taken apart into lists of one step each, which are
// done in the segment's order; the client gets one reply all the same. That a list of
// several does what these do is shown by the differential test of the Redis store.

// listScripts are the names of the scripts that do lists.
var listScripts = map[string]bool{"steps": true, "shareSteps": true}

// stepNames are the scripts that do the same as a step, by its letter. The first argument of an
// acquire or a release only begins with the letter.
var stepNames = map[string]string{"a": "acquire", "b": "return", "c": "confirm", "d": "release", "h": "heal", "r": "release", "x": "extend", "k": "admit", "e": "endHold", "p": "renewHold", "q": "confirmHold"}

// mutexNames maps a script for the other kinds of locks to the script that does the same for a mutex.
var mutexNames = map[string]string{"admit": "acquire", "endHold": "release", "renewHold": "extend", "confirmHold": "confirm"}

// stepSizes are how many keys and words of arguments each step has, by its letter; a
// renewal has as many as it has leases.
var stepSizes = map[string][2]int{"a": {3, 3}, "b": {3, 11}, "c": {2, 3}, "d": {2, 2}, "h": {2, 3}, "r": {2, 2}}

// scriptsDir has the calls of the Redis store's scripts. Tests run in their package's directory.
const scriptsDir = "../../../store/redisstore/internal/script/lua/calls"

// shareSizes are the same for the steps of locks that several can hold, as their script says
// it: of all, and of those that differ.
var shareSizes = sync.OnceValues(func() (common [2]int, own map[string][2]int) {
	text, err := os.ReadFile(scriptsDir + "/shareSteps.lua")
	all := regexp.MustCompile(`local (?:\w+, )*keys, args = (?:.*, )?(\d+), (\d+)\n`).FindSubmatch(text)
	if err != nil || all == nil {
		panic("sim: the script of lists of steps has changed: adapt this function to it")
	}
	size := func(b []byte) int { n, _ := strconv.Atoi(string(b)); return n }
	common, own = [2]int{size(all[1]), size(all[2])}, map[string][2]int{}
	for _, m := range regexp.MustCompile(`letter == '([a-z])'.* then\n +(?:keys, )?args = (?:(\d+), )?(\d+)\n`).FindAllSubmatch(text, -1) {
		other := [2]int{common[0], size(m[3])}
		if m[2] != nil {
			other[0] = size(m[2])
		}
		own[string(m[1])] = other
	}
	return common, own
})

// sizeOf is how many keys and words of arguments the step has that args begin with.
func sizeOf(args []string) [2]int {
	letter := letterOf(args[0])
	if stepNames[letter] == "extend" {
		leases, _ := strconv.Atoi(args[1])
		return [2]int{2 * leases, leases + 3}
	}
	if stepNames[letter] == "renewHold" {
		leases, _ := strconv.Atoi(args[1])
		return [2]int{4, 6 + 2*leases}
	}
	if size, ok := stepSizes[letter]; ok {
		return size
	}
	common, own := shareSizes()
	if size, ok := own[letter]; ok {
		return size
	}
	return common
}

// letterOf is the letter that a step begins with.
func letterOf(word string) string { return strings.ToLower(word[:min(1, len(word))]) }

// takeApart splits the command of a list into commands of one step each.
func takeApart(words []string) (all [][]string) {
	count, _ := strconv.Atoi(words[2])
	keys, args := words[3:3+count], words[3+count:]
	head, _ := strconv.Atoi(args[0])
	unread := keys[count-head/4:] // the locks of plain requests; see calls/steps.lua
	keys = keys[:count-head/4]
	var mark, gate []string
	if head%2 == 1 {
		mark, gate = keys[len(keys)-1:], args[len(args)-1:]
		keys, args = keys[:len(keys)-1], args[:len(args)-1]
	}
	begin := strconv.Itoa(head % 2)
	for args = args[1:]; len(args) > 0; {
		size := sizeOf(args)
		its := keys[:min(size[0], len(keys))]
		if len(unread) > 0 && plainRequest.MatchString(args[0]) {
			its = []string{unread[0], keys[0], keys[1]}
			unread, keys = unread[1:], keys[2:]
		} else {
			keys = keys[size[0]:]
		}
		part := []string{words[0], words[1], strconv.Itoa(size[0] + len(mark))}
		all = append(all, slices.Concat(part, its, mark, []string{begin}, args[:size[1]], gate))
		args = args[size[1]:]
	}
	return all
}

// plainRequest matches the first word of a new owner's request that does not wait.
var plainRequest = regexp.MustCompile(`^[aA]\d+$`)

// done is the result of a step that was done as it was asked.
var done = []byte(":1\r\n")

// onlyReply is the reply to the only step of a list, after the clock.
func onlyReply(said []byte, isList bool) []byte {
	if isList {
		if said[0] == '$' { // the clock alone
			said = slices.Concat(said, done)
		}
		said, _ = bytes.CutPrefix(said, []byte("*2\r\n"))
	}
	if said[0] == '-' { // where in which script it failed is not the same in a list
		if text, _, cut := bytes.Cut(said, []byte(" script: ")); cut {
			said = append(bytes.Clone(text), "\r\n"...)
		}
	}
	return said
}

// afterClock splits what onlyReply says of a list.
func afterClock(said []byte) (clock, result []byte) {
	end := 0
	switch said[0] {
	case '$':
		end = bytes.Index(said, []byte("\r\n")) + 2
		if said[1] != '-' {
			end += bytes.Index(said[end:], []byte("\r\n")) + 2
		}
	case '_':
		end = 3
	}
	return said[:end], said[end:]
}

// reply gives the answers to commands as they were written, each of so many parts.
func reply(parts []int, answers [][]byte, says func([]byte)) {
	for _, n := range parts {
		all := answers[:n]
		answers = answers[n:]
		if bytes.HasPrefix(all[0], []byte("-NOSCRIPT")) { // so says the server of the list
			all = all[:1]
		}
		if len(all) == 1 {
			says(all[0])
			continue
		}
		// Each part begins with the clock, or is an error.
		clock, whole := []byte("$-1\r\n"), true
		results := make([][]byte, n)
		for i, b := range all {
			at, result := afterClock(b)
			if results[i] = result; len(at) > 0 && at[1] != '-' {
				clock = at
			}
			whole = whole && bytes.Equal(result, done)
		}
		if whole && clock[1] != '-' {
			says(clock)
			continue
		}
		says(fmt.Appendf(nil, "*%d\r\n", n+1))
		says(clock)
		for _, b := range results {
			says(b)
		}
	}
}
