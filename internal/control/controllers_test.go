package control

import (
	"slices"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

func TestWhichControllersRun(t *testing.T) {
	t.Parallel()
	all := strings.Join(Names(), " ")
	for _, test := range []struct{ enabled, want string }{
		{"", all},
		{"*", all},
		{"-*", ""}, // as in kube-apiserver, where kube-controller-manager is another process
		{Namespace, Namespace},
		{"-" + Namespace, ""}, // as in Kubernetes, without a "*" only named ones run
		{"*,-" + GarbageCollector, strings.TrimPrefix(all, GarbageCollector+" ")},
		{"-" + GarbageCollector + ",*," + GarbageCollector, strings.TrimPrefix(all, GarbageCollector+" ")},
		{Namespace + ",-*," + StorageMigration, Namespace + " " + StorageMigration},
	} {
		config := Config{View: watchcache.New(nil, watchcache.Options{})}
		if test.enabled != "" {
			config.Enabled = strings.Split(test.enabled, ",")
		}
		var names []string
		for _, c := range New(config).all {
			names = append(names, c.name)
		}
		if names[0] != "definition-controller" {
			t.Errorf("%q: definitions have no controller", test.enabled)
		}
		names = names[1:]
		slices.Sort(names)
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("%q runs %q, want %q", test.enabled, got, test.want)
		}
	}
}
