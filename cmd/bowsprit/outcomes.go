package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/manual"
)

// outcome describes the exit codes of a command. Each text completes "if". An empty text stands for the usual meaning,
// or for a code that the command does not have.
type outcome struct {
	success, failure, negative string
	// others is the name of the program that the command runs or replaces. The command has its exit codes.
	others string
}

// misuse is the meaning of code 2 for all commands.
const misuse = "the command line is wrong"

// outcomes maps the path of a command below bowsprit to its exit codes. Other commands have the usual ones.
var outcomes = map[string]outcome{
	"backup": {
		success: "the file was written and checked, or a signal ended a series",
		failure: "it was not, and an existing FILE is unchanged",
	},
	"config check": {success: "the settings are valid", failure: "they are not"},
	"convert init": {
		success: "the rules pass on generated objects",
		failure: "a difference needs a rule of your own, or a file cannot be read",
	},
	"convert serve": {
		success: "a signal stopped the command, or the manifests were printed",
		failure: "it could not start, or ended by itself",
	},
	"convert test": {
		success: "all objects return as they were",
		failure: "one does not, the rules are invalid, or a file cannot be read",
	},
	"crd diff": {
		success: "no finding is an error", failure: "a definition or the server cannot be read",
		negative: "a finding is an error",
	},
	"crd export": {
		success: "all definitions were written", failure: "a file cannot be read, or a server would refuse a definition",
		negative: "a field has no equivalent on other clusters",
	},
	"crd lint":            {success: "a server would accept all definitions", failure: "it would refuse one, or a file cannot be read"},
	"demo":                {success: "the whole example exists", failure: "it does not"},
	"doctor":              {success: "there are no problems (warnings do not count)", failure: "there are"},
	"down":                {success: "the server is stopped", failure: "it is not, or there is no such server"},
	"etcd":                {others: "etcd"},
	"export":              {success: "all objects were written", failure: "some were not, or a namespace does not exist"},
	"import":              {success: "all objects were applied", failure: "an object or a file was not"},
	"konnectivity-agent":  {others: "Konnectivity's agent"},
	"konnectivity-server": {others: "Konnectivity's server"},
	"kube-apiserver":      {others: "kube-apiserver"},
	"kubectl":             {others: "kubectl"},
	"list":                {success: "the servers were listed, even if there are none"},
	"logs":                {success: "there is a log", failure: "there is none"},
	"mcp":                 {success: "the assistant or a signal ended the command", failure: "it could not start, or ended by itself"},
	"proxy":               stopped,
	"docs":                stopped,
	"restore": {
		success: "the directory was created, or with --check if the file is intact", failure: "it is not",
	},
	"run": {success: "the program ended with 0", failure: "it did not start, or ended with 1"},
	"serve": {
		success: "a signal or the end of standard input stopped the command", failure: "it could not start, or ended by itself",
	},
	"status":      {success: "the server is ready", failure: "it is not, or cannot be reached"},
	"uninstall":   {success: "the files were listed, even if there are none"},
	"up":          {success: "the server is ready", failure: "it is not"},
	"user create": {success: "the kubeconfig was printed", failure: "it was not"},
	"user delete": {
		success: "no binding names the user any more", failure: "a binding could not be changed, or none named the user",
	},
	"why-denied": {
		success:  "the request is allowed",
		negative: "the request is denied, or the object is refused",
	},
	"why-stuck": {
		success: "the object exists and was explained", failure: "the question has no answer, such as for an unknown kind",
		negative: "the object does not exist",
	},
}

// stopped is the outcome of commands that run until a signal.
var stopped = outcome{success: "a signal stopped the command", failure: "it could not start, or ended by itself"}

// complete fills in the usual meanings.
func (o outcome) complete() outcome {
	if o.success == "" {
		o.success = "the command succeeded"
	}
	if o.failure == "" {
		o.failure = "the command failed"
	}
	return o
}

// String returns the sentence for the command's help.
func (o outcome) String() string {
	if o.others != "" {
		return "The command has the exit codes of " + o.others + "."
	}
	o = o.complete()
	text := fmt.Sprintf("The exit code is 0 if %s, 1 if %s, ", o.success, o.failure)
	if o.negative != "" {
		return text + fmt.Sprintf("2 if %s, and 3 if %s.", misuse, o.negative)
	}
	return text + fmt.Sprintf("and 2 if %s.", misuse)
}

// code returns the exit code of a command that ended with err. The programs that others names end with 1 on every
// error.
func (o outcome) code(err error) exit.Code {
	if o.others != "" && err != nil {
		return exit.Failure
	}
	return exit.Of(err)
}

// explainOutcomes adds the exit codes of each command to its help.
func explainOutcomes(root *cobra.Command) {
	for _, cmd := range manual.Tree(root) {
		if !cmd.HasSubCommands() {
			cmd.Long = manual.Long(cmd) + "\n\n" + wrap(outcomes[pathBelow(root, cmd)].String(), helpColumns)
		}
	}
}

// helpColumns is the width of help texts.
const helpColumns = 120

// wrap breaks a text into lines of at most width columns.
func wrap(text string, width int) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case column+1+len(word) > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
