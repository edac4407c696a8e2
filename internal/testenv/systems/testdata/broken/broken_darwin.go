package broken

func inside() int { return missing }
