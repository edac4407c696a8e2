package stories

import "slices"

// All returns the stories, from the simplest to the subtlest.
func All() []Story {
	return []Story{
		setnx, setnxExpire, deleteAnybody, outlived, clientClocks, ids,
		failover, crash, clockJump, pauseBefore, pauseAfter, delayedPacket,
		sessionLost, revokedLease,
	}
}

// Find returns the story with the given name.
func Find(name string) (Story, bool) {
	all := All()
	i := slices.IndexFunc(all, func(s Story) bool { return s.Name == name })
	if i < 0 {
		return Story{}, false
	}
	return all[i], true
}
