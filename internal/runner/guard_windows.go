package runner

// IsGuard: there are no guards on Windows.
func IsGuard([]string) bool { return false }

// Guard is not called.
func Guard([]string) int { return CodeTrouble }
