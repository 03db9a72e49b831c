package check

// functions are those that lines of the text name. Each looks at the value that the line leads to, which may not be
// there.
func functions() map[string]func(*judgement, place) {
	all := map[string]func(*judgement, place){"nothing": func(*judgement, place) {}}
	for _, some := range []map[string]func(*judgement, place){
		valueFunctions(), podFunctions(), containerFunctions(), securityFunctions(), schedulingFunctions(),
		volumeFunctions(), claimFunctions(),
		podUpdateFunctions(), workloadFunctions(), jobFunctions(), serviceFunctions(), networkFunctions(),
		scalingFunctions(), storageFunctions(),
		accessFunctions(), quotaFunctions(), nodeFunctions(), signingFunctions(), flowFunctions(),
		attachmentFunctions(), deviceFunctions(),
	} {
		for name, f := range some {
			all[name] = f
		}
	}
	return all
}
