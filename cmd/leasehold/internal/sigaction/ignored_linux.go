package sigaction

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Ignored returns the signals that were ignored when the program started, as by "nohup"
// or by "trap ” TERM" of a shell. The language's runtime replaces that by handlers of its own
// before any code of ours runs, and package os/signal knows it of SIGHUP and SIGINT only.
// But the runtime remembers what it has replaced, in a table, and remembered reads that.
// If that fails, the signals that only the table knows count as not ignored.
//
// Call it before the program ignores signals itself.
var Ignored = sync.OnceValue(func() (sigs []syscall.Signal) {
	table, _ := remembered()
	untouched := ignoredNow()
	for sig := syscall.Signal(1); sig <= last; sig++ {
		if 32 <= sig && sig <= 34 { // C libraries use these for themselves
			continue
		}
		if Known[sig] || untouched&(1<<(sig-1)) != 0 || table != nil && table[sig] == sigIgn {
			sigs = append(sigs, sig)
		}
	}
	return sigs
})

const sigIgn = 1

// ignoredNow returns a bit for each signal that this process ignores: of those that the runtime
// leaves alone, as they were at the start.
func ignoredNow() (bits uint64) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, text, _ := bytes.Cut(status, []byte("\nSigIgn:"))
	fmt.Sscanf(string(text), "%x", &bits)
	return bits
}

// needle is a signal that nobody uses.
const needle = syscall.Signal(last)

// remembered returns the runtime's table of the handlers that it found at the start, by signal
// (fwdSig in runtime/signal_unix.go). Its address is not known, so the function has the
// runtime write the address of a handler into the table's last entry, and then looks for that
// in the program's variables. It changes no memory, and what it finds has to look like the
// table: anything else is an error.
//
// The runtime notes the handler of a signal when the program asks for the signal for the first
// time, unless it has a handler of its own there. So the needle is ignored first, gets the
// runtime's handler back from us, and is asked for.
func remembered() (*[last + 1]uintptr, error) {
	var own action
	handler, known := uintptr(0), rtSigaction(needle, nil, &own)
	if known {
		handler, known = own.handler()
	}
	if !known || handler <= sigIgn {
		return nil, fmt.Errorf("the runtime does not handle %v", needle)
	}
	signal.Ignore(needle)
	rtSigaction(needle, &own, nil)
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, needle)
	signal.Stop(asked)
	return find(handler)
}

// find looks for the table whose last entry is handler.
func find(handler uintptr) (table *[last + 1]uintptr, err error) {
	memory, err := os.Open("/proc/self/mem")
	if err != nil {
		return nil, err
	}
	defer memory.Close()
	areas, err := variables()
	if err != nil {
		return nil, err
	}
	const word, size = int(unsafe.Sizeof(handler)), int(unsafe.Sizeof(*table))
	want := make([]byte, word)
	put(want, handler)
	for _, a := range areas {
		text := make([]byte, a.end-a.start)
		if _, err := memory.ReadAt(text, int64(a.start)); err != nil {
			return nil, err
		}
		for at := 0; ; at += word {
			next := bytes.Index(text[at:], want)
			if next < 0 {
				break
			}
			at += next
			if at%word != 0 {
				at -= at % word
				continue
			}
			if at+word < size {
				continue
			}
			var found [last + 1]uintptr
			for i := range found {
				found[i] = get(text[at+word-size+i*word:])
			}
			switch {
			case !isTable(&found):
			case table != nil && *table != found:
				return nil, fmt.Errorf("several tables look like that of the handlers")
			default:
				table = &found
			}
		}
	}
	if table == nil {
		return nil, fmt.Errorf("there is no table of the handlers")
	}
	return table, nil
}

// isTable reports whether t can be what the runtime has found at the start: a program that is
// executed has no handlers. With cgo, libraries may have some for faults and for their own use.
func isTable(t *[last + 1]uintptr) bool {
	for sig, handler := range t[:needle] {
		switch sig := syscall.Signal(sig); sig {
		case 0, syscall.SIGKILL, syscall.SIGSTOP:
			if handler != 0 {
				return false
			}
		case syscall.SIGHUP, syscall.SIGINT:
			if (handler == sigIgn) != Known[sig] {
				return false
			}
		case syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL, syscall.SIGTRAP, syscall.SIGABRT, syscall.SIGSYS, 32, 33, 34:
		default:
			if handler > sigIgn {
				return false
			}
		}
	}
	return true
}

func put(b []byte, v uintptr) {
	if len(b) == 4 {
		binary.NativeEndian.PutUint32(b, uint32(v))
	} else {
		binary.NativeEndian.PutUint64(b, uint64(v))
	}
}

func get(b []byte) uintptr {
	if unsafe.Sizeof(uintptr(0)) == 4 {
		return uintptr(binary.NativeEndian.Uint32(b))
	}
	return uintptr(binary.NativeEndian.Uint64(b))
}

// area is a part of our memory.
type area struct{ start, end uint64 }

// variables returns where the program's variables are: the writable parts of its file, and
// what follows each of them without a gap and without a name. Most of that is never touched,
// and left out.
func variables() (areas []area, err error) {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	follows := uint64(0)
	for line := range strings.Lines(string(maps)) {
		var a area
		var perms, offset, device, inode string
		if n, _ := fmt.Sscanf(line, "%x-%x %s %s %s %s", &a.start, &a.end, &perms, &offset, &device, &inode); n != 6 {
			return nil, fmt.Errorf("not a line of maps: %q", line)
		}
		_, path, _ := strings.Cut(line, "/")
		ours := inode != "0" && "/"+strings.TrimSpace(path) == self
		if strings.HasPrefix(perms, "rw") && (ours || a.start == follows && inode == "0" && !strings.HasSuffix(strings.TrimSpace(line), "]")) {
			areas, follows = append(areas, a.resident()...), a.end
		}
	}
	return areas, nil
}

// resident returns those parts of a that are in memory, or all of it if that is unknown.
func (a area) resident() (parts []area) {
	page := uint64(os.Getpagesize())
	pages := make([]byte, (a.end-a.start+page-1)/page)
	if _, _, err := unix.Syscall(unix.SYS_MINCORE, uintptr(a.start), uintptr(a.end-a.start), uintptr(unsafe.Pointer(&pages[0]))); err != 0 {
		return []area{a}
	}
	for i, state := range pages {
		start := a.start + uint64(i)*page
		switch n := len(parts); {
		case state&1 == 0:
		case n > 0 && parts[n-1].end == start:
			parts[n-1].end += page
		default:
			parts = append(parts, area{start, start + page})
		}
	}
	return parts
}
