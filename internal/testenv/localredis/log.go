package localredis

import (
	"os"
	"strings"
)

// logFile is the path of the file to which a server logs.
type logFile string

// end returns what was logged, or the end of it if it is long.
func (l logFile) end() string {
	b, err := os.ReadFile(string(l))
	if err != nil {
		return err.Error()
	}
	const most = 16 << 10
	if len(b) > most {
		b = append([]byte("..."), b[len(b)-most:]...)
	}
	return strings.TrimSpace(string(b))
}

func (l logFile) size() int64 {
	fi, err := os.Stat(string(l))
	if err != nil {
		return 0
	}
	return fi.Size()
}

func (l logFile) from(offset int64) string {
	b, err := os.ReadFile(string(l))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b[min(int(offset), len(b)):]))
}
