package guardtest

const holderEnv = "GUARDTEST_HOLDER"

func beHolder() {}
