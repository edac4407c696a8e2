package sim

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A client sends what several goroutines want at one time as one list of steps, in an order
// that nobody can repeat. So a list is taken apart into lists of one step each, which are
// done in the segment's order; the client gets one reply all the same. That a list of
// several does what these do is shown by the differential test of the Redis store.

// listScript is the name of the script that does lists.
const listScript = "steps"

// stepNames are the scripts that do the same as a step, by its letter.
var stepNames = map[string]string{"a": "acquire", "b": "return", "c": "confirm", "h": "heal", "r": "release", "x": "extend"}

// stepSizes are how many keys and words of arguments each step has, by its letter; a
// renewal has as many as it has leases.
var stepSizes = map[string][2]int{"a": {3, 8}, "b": {3, 11}, "c": {2, 4}, "h": {2, 3}, "r": {3, 7}}

// takeApart takes the command of a list apart.
func takeApart(words []string) (all [][]string) {
	count, _ := strconv.Atoi(words[2])
	keys, args := words[3:3+count], words[3+count:]
	marked := args[0] == "1"
	var mark, gate []string
	if marked {
		mark, gate = keys[count-1:], args[len(args)-3:]
		keys, args = keys[:count-1], args[:len(args)-3]
	}
	begin := args[0]
	for args = args[1:]; len(args) > 0; {
		size := stepSizes[strings.ToLower(args[0])]
		if stepNames[strings.ToLower(args[0])] == "extend" {
			leases, _ := strconv.Atoi(args[1])
			size = [2]int{2 * leases, leases + 3}
		}
		part := []string{words[0], words[1], strconv.Itoa(size[0] + len(mark))}
		all = append(all, slices.Concat(part, keys[:size[0]], mark, []string{begin}, args[:size[1]], gate))
		keys, args = keys[size[0]:], args[size[1]:]
	}
	return all
}

// onlyReply is the reply to the only step of a list.
func onlyReply(said []byte, isList bool) []byte {
	if isList {
		said, _ = bytes.CutPrefix(said, []byte("*1\r\n"))
	}
	if said[0] == '-' { // where in which script it failed is not the same in a list
		if text, _, cut := bytes.Cut(said, []byte(" script: ")); cut {
			said = append(bytes.Clone(text), "\r\n"...)
		}
	}
	return said
}

// reply gives the answers to commands as they were written, each of so many parts.
func reply(parts []int, answers [][]byte, says func([]byte)) {
	for _, n := range parts {
		all := answers[:n]
		answers = answers[n:]
		if bytes.HasPrefix(all[0], []byte("-NOSCRIPT")) { // so says the server of the list
			all = all[:1]
		} else if n > 1 {
			says(fmt.Appendf(nil, "*%d\r\n", n))
		}
		for _, b := range all {
			says(b)
		}
	}
}
