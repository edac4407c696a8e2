package runner

// IsHelper: there are no helpers on Windows.
func IsHelper([]string) bool { return false }

// Help is not called.
func Help([]string) int { return CodeTrouble }
