package quorum

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

var resizing = regexp.MustCompile(`^at (\d+)ms a resize begins on (\d+) nodes$`)

// parseResize returns the resize that a line of a story begins, or nil. A node has 50 ms to
// answer.
func parseResize(line string) *Resize {
	m := resizing.FindStringSubmatch(line)
	if m == nil {
		return nil
	}
	ms, _ := strconv.Atoi(m[1])
	nodes, _ := strconv.Atoi(m[2])
	z := NewResize(Config{Nodes: nodes, NodeTimeout: 50 * time.Millisecond}, at(ms))
	return &z
}

// resizeText describes the resize and each node in it.
func resizeText(z *Resize) string {
	text, did := "seating, ", "gave the seat"
	if z.setting {
		text, did = "setting, ", "set"
	}
	text += verdictNames[z.Verdict()]
	for i := range z.Nodes {
		text += fmt.Sprintf(" | %d %s", i, map[Phase]string{Asked: "asked", Held: did, Refused: "refused", Missing: "not reached", Doubtful: "may have " + did}[z.nodes[i]])
		if z.Late(i) {
			text += " (late)"
		}
	}
	if z.Verdict() == Lost && z.MayHave() != 0 {
		text += " | may have worked in part"
	}
	return text
}
