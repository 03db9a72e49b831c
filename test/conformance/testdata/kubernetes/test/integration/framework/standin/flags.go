// Package standin helps to start a server of another process for tests that configure a kube-apiserver in their own: it
// says their options by flags, and asks their authenticators and authorizers by webhook.
package standin

import (
	"sort"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// elsewhere are flags that the harness itself gives.
var elsewhere = map[string]bool{
	"etcd-servers": true, "bind-address": true, "secure-port": true, "feature-gates": true, "emulated-version": true,
	"min-compatibility-version": true, "emulation-forward-compatible": true,
}

// Flags returns the flags of o that differ from kube-apiserver's defaults, sorted.
func Flags(o *options.ServerRunOptions) []string {
	defaults := map[string]string{}
	visit(options.NewServerRunOptions(), func(f *pflag.Flag) { defaults[f.Name] = f.Value.String() })
	var flags []string
	visit(o, func(f *pflag.Flag) {
		if elsewhere[f.Name] || f.Value.String() == defaults[f.Name] {
			return
		}
		for _, value := range values(f) {
			flags = append(flags, "--"+f.Name+"="+value)
		}
	})
	sort.Strings(flags)
	return flags
}

func visit(o *options.ServerRunOptions, visit func(*pflag.Flag)) {
	sets := o.Flags()
	for _, set := range sets.FlagSets {
		set.VisitAll(visit)
	}
}

// values returns what f is set to, in the words of a command line, an entry for each time that it is given.
func values(f *pflag.Flag) []string {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return []string{strings.Join(list.GetSlice(), ",")}
	}
	value := f.Value.String()
	if f.Value.Type() == "namedCertKey" {
		return strings.Split(strings.Trim(value, "[]"), ";")
	}
	return []string{value}
}
