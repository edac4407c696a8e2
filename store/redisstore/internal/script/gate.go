package script

import (
	"bytes"
	"strings"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// RunPrint is how many characters of a run ID identify a run.
const RunPrint = 12

// expected is how a mark begins that allows grants; see gate.lua. A client that counts a
// quarantine of its own has uncertain instead, which is as long.
const expected, uncertain = "1 open ", "1 wait "

// appendGate appends the argument about the mark, for a node whose run is not known.
func appendGate(b []byte, print string) []byte {
	return resp.AppendWord(b, expected, print, " ", strings.Repeat(nodemark.Unknown, RunPrint))
}

// FillGate patches the argument about the mark at the end of b: the run of the server that is
// asked, unless that is empty, and whether this client counts a quarantine of its own. All
// commands that look at the mark end with such an argument.
func FillGate(b []byte, run string, counting bool) {
	end := len(b) - len("\r\n")
	if run != "" {
		copy(b[end-RunPrint:end], run)
	}
	if counting {
		begin := bytes.LastIndexByte(b[:end], '\n') + 1
		copy(b[begin:], uncertain)
	}
}
