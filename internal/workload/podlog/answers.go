package podlog

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// The annotations with the answers of commands: in all containers, or in the container that the suffix names.
const (
	execs   = "bowsprit.dev/simulate-exec"
	execsOf = "simulate-exec.bowsprit.dev/"
)

const (
	// maxAnswers bounds the answers of a container, and maxArguments the arguments of a command in an answer.
	maxAnswers   = 100
	maxArguments = 100
	// exitMost is the highest exit code of a program.
	exitMost = 255
	// notFound is the exit code of a shell for an unknown command.
	notFound = 127
)

// answer is the output of a command, and the commands that have it.
type answer struct {
	// Command is the program with its arguments; empty means every command. "*" stands for any argument, and "..." at
	// the end for any number of them.
	Command  []string `json:"command,omitempty"`
	Stdout   string   `json:"stdout,omitempty"`
	Stderr   string   `json:"stderr,omitempty"`
	ExitCode int      `json:"exitCode,omitempty"`
}

// answersOf returns the answers of a container's commands. there is false if the pod has none.
func answersOf(pod *corev1.Pod, container string) (all []answer, there bool, err error) {
	name := execsOf + container
	text, there := pod.Annotations[name]
	if !there {
		name = execs
		if text, there = pod.Annotations[name]; !there {
			return nil, false, nil
		}
	}
	if all, err = parseAnswers(text); err != nil {
		return nil, true, fmt.Errorf("annotation %s of pod %s: %w", name, pod.Name, err)
	}
	return all, true, nil
}

// parseAnswers reads the answers in an annotation.
func parseAnswers(text string) (all []answer, err error) {
	all, err = cluster.ListIn[answer](text, "answers", "command, stdout, stderr and exitCode", maxAnswers)
	if err != nil {
		return nil, err
	}
	for i, a := range all {
		switch {
		case len(a.Command) > maxArguments:
			return nil, fmt.Errorf("answer %d: the command has %d arguments, more than %d", i, len(a.Command), maxArguments)
		case a.ExitCode < 0 || a.ExitCode > exitMost:
			return nil, fmt.Errorf("answer %d: the exit code %d is not between 0 and %d", i, a.ExitCode, exitMost)
		}
	}
	return all, nil
}

// find returns the first answer for a command. Without one it is the answer of a shell that does not find the program.
func find(all []answer, command []string) *answer {
	for i := range all {
		if all[i].matches(command) {
			return &all[i]
		}
	}
	return &answer{ExitCode: notFound, Stderr: fmt.Sprintf(
		"%s: not found among the simulated commands of the pod (annotation %s)\n", command[0], execs)}
}

func (a *answer) matches(command []string) bool {
	if len(a.Command) == 0 {
		return true
	}
	wanted := a.Command
	if last := len(wanted) - 1; wanted[last] == "..." && len(command) >= last {
		wanted, command = wanted[:last], command[:last]
	}
	if len(wanted) != len(command) {
		return false
	}
	for i, argument := range wanted {
		if argument != "*" && argument != command[i] {
			return false
		}
	}
	return true
}
