package script

import (
	"strings"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// RunPrint is how many characters of a run ID identify a run.
const RunPrint = 12

// appendGate appends the arguments about the mark, for a node whose run is not known.
func appendGate(b []byte, print string) []byte {
	b = resp.AppendWord(b, print)
	b = resp.AppendWord(b, strings.Repeat(nodemark.Unknown, RunPrint))
	return resp.AppendWord(b, "0")
}
