package workloads

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestRandomStories runs random stories, each with some workloads and a series of events, and compares the objects
// after each step. RANDOM_STORIES is their number, RANDOM_SEED the first one; a story depends only on its number. It
// takes minutes, so make stories runs them and make test does not.
func TestRandomStories(t *testing.T) {
	number, err := strconv.Atoi(os.Getenv("RANDOM_STORIES"))
	if err != nil {
		t.Skip("RANDOM_STORIES says how many are to be told")
	}
	seed, err := strconv.ParseUint(os.Getenv("RANDOM_SEED"), 10, 64)
	if err != nil {
		seed = 1
	}
	var all []named
	for n := range uint64(number) {
		a := &author{r: rand.New(rand.NewPCG(18, seed+n))}
		all = append(all, named{fmt.Sprintf("random-%d", seed+n), a.write()})
	}
	runAll(t, newPair(t, twoNodes), all)
	if t.Failed() {
		t.Log("RANDOM_STORIES=1 RANDOM_SEED=N tells story N alone")
	}
}

// author makes up a story.
type author struct {
	r     *rand.Rand
	lines []string
}

func (a *author) addLine(format string, args ...any) {
	a.lines = append(a.lines, fmt.Sprintf(format, args...))
}

func (a *author) pick(of ...string) string { return of[a.r.IntN(len(of))] }

func (a *author) one(n int) bool { return a.r.IntN(n) == 0 }

func (a *author) write() []string {
	tales := []func(name string){
		a.deployment, a.deployment, a.set("replicasets"), a.set("replicationcontrollers"), a.statefulSet, a.daemonSet,
		a.job, a.cronJob,
	}
	for _, name := range []string{"one", "two"}[:1+a.r.IntN(2)] {
		if a.one(3) {
			a.addLine("make services/%s {publishNotReadyAddresses: %v}", name, a.one(2))
		}
		if a.one(3) {
			a.addLine("make poddisruptionbudgets/%s {%s: %s}", name, a.pick("minAvailable", "maxUnavailable"),
				a.pick("0", "1", "2", "30%", "50%"))
			// Otherwise the controller may sync the budget before or after its pods, and without a sync the budget has
			// no observed generation.
			a.addLine("until poddisruptionbudgets/%s .status.observedGeneration=1", name)
		}
		tales[a.r.IntN(len(tales))](name)
		a.end(name)
	}
	return a.lines
}

// end has some workload of the name deleted, in one of the ways.
func (a *author) end(name string) {
	last := ""
	for _, line := range a.lines {
		if strings.HasPrefix(line, "make ") && strings.Contains(line, "/"+name+" ") &&
			!strings.Contains(line, "services/") && !strings.Contains(line, "poddisruptionbudgets/") {
			last = strings.Fields(line)[1]
		}
	}
	if !a.one(3) || last == "" {
		return
	}
	a.addLine("%s %s", a.pick("delete", "orphan", "foreground"), last)
	a.addLine("gone %s", last)
	a.addLine("same")
}

// template is a change of the template: of so many that going back is likely.
func (a *author) template() string {
	return a.pick("tags: {v: null}", `tags: {v: "1"}`, `tags: {v: "2"}`, "pod: {containers: [{name: c, image: d}]}",
		"pod: {containers: [{name: c, image: c}]}")
}

// bounds returns a surge and a maximum of unavailable pods, at least one of them not zero.
func (a *author) bounds() string {
	surge, unavailable := a.pick("0", "1", "2", "3", "25%", "50%", "100%"), a.pick("0", "1", "2", "25%", "40%")
	if surge == "0" && unavailable == "0" {
		surge = "1"
	}
	return fmt.Sprintf("rollingUpdate: {maxSurge: %s, maxUnavailable: %s}", surge, unavailable)
}

func (a *author) deployment(name string) {
	about := "deployments/" + name
	a.addLine("make %s {replicas: %d, strategy: {%s}, revisionHistoryLimit: %s, minReadySeconds: %s}", about, a.r.IntN(7),
		a.bounds(), a.pick("0", "1", "2", "10"), a.pick("0", "0", "0", "1"))
	a.addLine("ready %s", about)
	a.addLine("same")
	recreates, paused := false, false
	for range 1 + a.r.IntN(6) {
		var messages []string
		if a.one(2) {
			messages = append(messages, fmt.Sprintf("replicas: %d", a.r.IntN(11)))
		}
		before := len(messages)
		if a.one(2) {
			messages = append(messages, a.template())
		} else if a.one(3) && !recreates {
			messages = append(messages, "unready: "+a.pick("true", "null"))
		}
		if len(messages) > before {
			a.addLine("tick -") // ReplicaSets share a new size out by their ages, which are in seconds
		}
		if a.one(6) {
			paused = !paused
			messages = append(messages, fmt.Sprintf("paused: %v", paused))
		}
		if a.one(6) && !recreates {
			messages = append(messages, "strategy: {"+a.bounds()+"}")
		} else if a.one(12) && !recreates {
			recreates = true
			messages = append(messages, "strategy: {type: Recreate, rollingUpdate: null}")
		}
		if len(messages) == 0 {
			messages = append(messages, fmt.Sprintf("meta: {annotations: {mine: \"%d\"}}", a.r.IntN(3)))
		}
		a.addLine("set %s {%s}", about, strings.Join(messages, ", "))
		a.addLine("seen %s", about)
		a.addLine("same")
	}
}

func (a *author) set(resource string) func(string) {
	return func(name string) {
		about := resource + "/" + name
		if a.one(3) {
			a.addLine("make pods/%s-own {mark: {app: %s}, meta: {annotations: "+
				"{controller.kubernetes.io/pod-deletion-cost: \"9\"}}}", name, name) // else its deletion is random
			a.addLine("ready pods/%s-own", name)
		}
		replicas, mixed := a.r.IntN(6), false
		a.addLine("make %s {replicas: %d, minReadySeconds: %s}", about, replicas, a.pick("0", "0", "0", "1"))
		a.addLine("ready %s", about)
		loses := a.one(2) // then all pods have one template, and the name selects the lost one
		for range 1 + a.r.IntN(5) {
			switch n := a.r.IntN(4); {
			case n == 0 && !loses:
				a.addLine("set %s {%s}", about, a.template())
				mixed = true
			case n == 1 && loses:
				replicas = 2
				a.addLine("set %s {replicas: 2}", about)
				a.addLine("ready %s", about)
				a.addLine("same")
				a.addLine("lose pods/%s", name)
			default:
				// The nodes of pods determine which pod of several templates is deleted, so none is deleted, or all.
				if to := a.r.IntN(8); !mixed || to == 0 || to > replicas {
					replicas = to
				}
				a.addLine("set %s {replicas: %d}", about, replicas)
			}
			a.addLine("ready %s", about)
			a.addLine("same")
		}
	}
}

func (a *author) statefulSet(name string) {
	about := "statefulsets/" + name
	claims := ""
	if a.one(3) {
		claims = fmt.Sprintf(", persistentVolumeClaimRetentionPolicy: {whenDeleted: %s, whenScaled: %s}, "+
			"volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], "+
			"resources: {requests: {storage: 1Gi}}}}]", a.pick("Retain", "Delete"), a.pick("Retain", "Delete"))
	}
	replicas := a.r.IntN(5)
	start := a.r.IntN(2)
	a.addLine("make %s {replicas: %d, podManagementPolicy: %s, revisionHistoryLimit: %s, updateStrategy: {type: %s}, "+
		"minReadySeconds: %s, ordinals: {start: %d}%s}", about, replicas, a.pick("OrderedReady", "Parallel"),
		a.pick("0", "1", "10"), a.pick("RollingUpdate", "RollingUpdate", "OnDelete"), a.pick("0", "0", "0", "1"), start,
		claims)
	a.addLine("ready %s", about)
	a.addLine("same")
	for range 1 + a.r.IntN(5) {
		switch a.r.IntN(9) {
		case 0, 1:
			replicas = a.r.IntN(6)
			a.addLine("set %s {replicas: %d}", about, replicas)
		case 6:
			start = a.r.IntN(3)
			a.addLine("set %s {ordinals: {start: %d}}", about, start)
		case 7:
			if claims != "" {
				a.addLine("set %s {persistentVolumeClaimRetentionPolicy: {whenDeleted: %s, whenScaled: %s}}", about,
					a.pick("Retain", "Delete"), a.pick("Retain", "Delete"))
			} else if replicas > 0 {
				a.addLine("lose pods/%s", name)
			}
		case 2:
			a.addLine("set %s {unready: %s}", about, a.pick("true", "null"))
		case 3:
			a.addLine("set %s {updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: %d}}}", about, a.r.IntN(5))
		default:
			a.addLine("set %s {%s}", about, a.template())
		}
		a.addLine("seen %s", about)
		a.addLine("same")
	}
}

func (a *author) daemonSet(name string) {
	about := "daemonsets/" + name
	update := fmt.Sprintf("type: RollingUpdate, rollingUpdate: {maxUnavailable: %s, maxSurge: 0}",
		a.pick("1", "2", "50%", "100%"))
	if a.one(3) {
		update = fmt.Sprintf("type: RollingUpdate, rollingUpdate: {maxUnavailable: 0, maxSurge: %s}",
			a.pick("1", "2", "50%", "100%"))
	} else if a.one(4) {
		update = "type: OnDelete"
	}
	a.addLine("make %s {updateStrategy: {%s}, revisionHistoryLimit: %s}", about, update, a.pick("0", "1", "10"))
	a.addLine("ready %s", about)
	for range 1 + a.r.IntN(5) {
		switch a.r.IntN(9) {
		case 6:
			a.addLine("deleteall pods/-")
		case 7:
			a.addLine("deleteall controllerrevisions/-")
			a.addLine("pause 0.3")
		case 0:
			a.addLine("set %s {pod: {nodeSelector: {kubernetes.io/hostname: %s}}}", about,
				a.pick("null", "node-0", "node-1"))
		case 1:
			a.addLine("set %s {unready: %s}", about, a.pick("true", "null"))
		default:
			a.addLine("set %s {%s}", about, a.template())
		}
		a.addLine("seen %s", about)
		a.addLine("same")
	}
}

func (a *author) job(name string) {
	about := "jobs/" + name
	spec := []string{fmt.Sprintf("parallelism: %d", 1+a.r.IntN(4))}
	completions, failedOnly := 1+a.r.IntN(5), false
	switch runs := a.one(3); {
	case runs:
		spec = append(spec, "runs: 1h")
	case a.one(2): // one pod at a time: the order in which simultaneous failures are counted is random
		spec[0] = "parallelism: 1"
		spec = append(spec, "exits: 1", "backoffLimit: 0")
		if a.one(2) {
			spec = append(spec, fmt.Sprintf("podFailurePolicy: {rules: [{action: %s, onPodConditions: [{type: Other}]}, "+
				"{action: %s, onExitCodes: {operator: %s, values: [%s]}}]}", a.pick("FailJob", "Count", "Ignore"),
				a.pick("FailJob", "Count"), a.pick("In", "NotIn"), a.pick("1", "2", "1, 2", "3, 4")))
			failedOnly = true
		}
	}
	if a.one(2) {
		spec = append(spec, "completionMode: Indexed", fmt.Sprintf("completions: %d", completions))
		if a.one(3) && strings.Contains(spec[1], "exits") {
			spec = append(spec, "backoffLimitPerIndex: 0", fmt.Sprintf("maxFailedIndexes: %d", a.r.IntN(completions)))
		} else if a.one(4) {
			spec[0] = "parallelism: 1"
			spec = append(spec, fmt.Sprintf("successPolicy: {rules: [{succeededCount: %d}]}", 1+a.r.IntN(completions)))
		}
	} else if a.one(2) {
		spec = append(spec, fmt.Sprintf("completions: %d", completions))
	}
	suspended := a.one(3)
	replaced := a.pick("Failed", "TerminatingOrFailed")
	if failedOnly {
		replaced = "Failed"
	}
	spec = append(spec, fmt.Sprintf("suspend: %v", suspended), "podReplacementPolicy: "+replaced)
	a.addLine("make %s {%s}", about, strings.Join(spec, ", "))
	runs := strings.Contains(strings.Join(spec, " "), "runs")
	for range a.r.IntN(4) {
		a.waitFor(about, runs, suspended)
		if runs && !suspended && a.one(2) {
			a.addLine("set %s {parallelism: %d}", about, a.r.IntN(5))
			continue
		}
		suspended = !suspended
		a.addLine("set %s {suspend: %v}", about, suspended)
	}
	a.waitFor(about, runs, suspended)
	a.addLine("same")
}

// waitFor waits until a Job rests.
func (a *author) waitFor(about string, runs, suspended bool) {
	switch {
	case suspended && runs:
		a.addLine(`until %s .status.conditions[?(@.type=="Suspended")].status=True`, about)
	case suspended:
		a.addLine("pause 0.3")
	case runs:
		a.addLine("pause 0.3")
	default:
		a.addLine("ended %s", about)
	}
	a.addLine("same")
}

func (a *author) cronJob(name string) {
	about := "cronjobs/" + name
	runs := a.one(2)
	job := ""
	if runs {
		job = ", job: {suspend: true}"
	}
	a.addLine("make %s {suspend: true, concurrencyPolicy: %s, successfulJobsHistoryLimit: %d%s}", about,
		a.pick("Allow", "Forbid", "Replace"), a.r.IntN(3), job)
	for i := range 1 + a.r.IntN(4) {
		a.addLine("set %s {suspend: true, schedule: \"0 0 %d 2 *\", timeZone: %s}", about, 1+(i+a.r.IntN(2))%27,
			a.pick("null", "Asia/Tokyo", "America/New_York"))
		a.addLine(`status %s {lastScheduleTime: "2024-0%d-01T00:00:00Z"}`, about, 1+a.r.IntN(9))
		a.addLine("set %s {suspend: false}", about)
		a.addLine("pause 0.3")
		a.addLine("same")
	}
}
