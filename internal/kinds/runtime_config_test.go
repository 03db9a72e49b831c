package kinds_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
)

// parse parses a command line.
func parse(text string) kinds.RuntimeConfig {
	c := kinds.RuntimeConfig{}
	for pair := range strings.SplitSeq(text, ",") {
		if key, value, _ := strings.Cut(pair, "="); pair != "" {
			c[key] = value
		}
	}
	return c
}

// TestRuntimeConfigErrors compares errors with kube-apiserver 1.36.3, which has "runtime-config" in some of them in the
// place of the flag's name.
func TestRuntimeConfigErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ config, err string }{
		{"", ""},
		{"foo", "invalid key foo"},
		{"foo=bar", "invalid key foo"},
		{"a/b/c/d=true", "invalid key a/b/c/d"},
		{"api/all=false", "invalid with only api/all=false"},
		{"api/all=false,apps/v1=false", "invalid with only api/all=false"},
		{"api/all=false,v1=true", ""},
		{"api/all=maybe", "invalid value api/all=maybe"},
		{"api/all", "invalid value api/all="},
		{"api/beta=TRUE", "invalid value api/beta=TRUE"},
		{"foo/v1=true", "unknown api groups foo/v1"},
		{"foo/v1=true,bar/v2=true,apps/v9=true", "unknown api groups bar/v2,foo/v1"},
		{"apps/v9=true", "group version apps/v9 that has not been registered"},
		{"apps/v1=maybe", `invalid value of apps/v1: maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax`},
		{"apps/v1=TRUE,batch/v1=0,policy/v1", ""},
		{"apps/v1/Deployments=true",
			`invalid key apps/v1/Deployments: group/version/resource and resource is always lowercase plural, not "Deployments"`},
		{"apps/v1/nonsense=false", ""},
		{"api/legacy=whatever", ""},
		{"v1=false", ""},
		{"extensions/v1beta1=true", ""},
	}
	for _, test := range tests {
		got := ""
		if err := parse(test.config).Validate(); err != nil {
			got = err.Error()
		}
		if got != test.err {
			t.Errorf("%s: %q, want %q", test.config, got, test.err)
		}
	}
}

// emulateNothing is a server of its own release.
var emulateNothing kinds.Emulation

// served returns "group/version/plural" of the served versions in a catalog of the kinds.
func served(kinds []*catalog.Resource) []string {
	var out []string
	for _, r := range kinds {
		for _, v := range r.Versions {
			if r.Served && v.Served {
				out = append(out, strings.TrimPrefix(r.Group+"/"+v.Name+"/"+r.Plural, "/"))
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestRuntimeConfig(t *testing.T) {
	t.Parallel()
	usual := served(kinds.Resources())
	var onDemand []string
	for _, r := range kinds.Resources() {
		for _, v := range r.Versions {
			if !v.Served && !(r.Kind == "ValidatingAdmissionPolicy" || r.Kind == "ValidatingAdmissionPolicyBinding") {
				onDemand = append(onDemand, r.Group+"/"+v.Name+"/"+r.Plural)
			}
		}
	}
	slices.Sort(onDemand)
	if want := strings.Fields(`
		admissionregistration.k8s.io/v1alpha1/mutatingadmissionpolicies admissionregistration.k8s.io/v1alpha1/mutatingadmissionpolicybindings
		admissionregistration.k8s.io/v1beta1/mutatingadmissionpolicies admissionregistration.k8s.io/v1beta1/mutatingadmissionpolicybindings
		certificates.k8s.io/v1alpha1/clustertrustbundles certificates.k8s.io/v1beta1/clustertrustbundles
		certificates.k8s.io/v1beta1/podcertificaterequests
		coordination.k8s.io/v1alpha2/leasecandidates coordination.k8s.io/v1beta1/leasecandidates
		internal.apiserver.k8s.io/v1alpha1/storageversions
		networking.k8s.io/v1beta1/ipaddresses networking.k8s.io/v1beta1/servicecidrs
		resource.k8s.io/v1alpha3/devicetaintrules resource.k8s.io/v1alpha3/resourcepoolstatusrequests
		resource.k8s.io/v1beta1/deviceclasses resource.k8s.io/v1beta1/resourceclaims resource.k8s.io/v1beta1/resourceclaimtemplates
		resource.k8s.io/v1beta1/resourceslices resource.k8s.io/v1beta2/deviceclasses
		resource.k8s.io/v1beta2/devicetaintrules resource.k8s.io/v1beta2/resourceclaims resource.k8s.io/v1beta2/resourceclaimtemplates
		resource.k8s.io/v1beta2/resourceslices scheduling.k8s.io/v1alpha3/podgroups scheduling.k8s.io/v1alpha3/workloads
		scheduling.k8s.io/v1beta1/podgroups scheduling.k8s.io/v1beta1/workloads
		storage.k8s.io/v1beta1/volumeattributesclasses storagemigration.k8s.io/v1beta1/storageversionmigrations`); !slices.Equal(onDemand, want) {
		t.Errorf("served on demand:\n%s\nwant\n%s", strings.Join(onDemand, "\n"), strings.Join(want, "\n"))
	}
	gone := func(name string) bool { // in 1.37
		return slices.Contains([]string{"networking.k8s.io/v1beta1", "storage.k8s.io/v1beta1",
			"certificates.k8s.io/v1alpha1"}, name[:strings.LastIndex(name, "/")])
	}
	with := func(part string) func([]string) []string {
		return func(all []string) []string {
			for _, name := range onDemand {
				if strings.Contains(name, part) && !gone(name) {
					all = append(all, name)
				}
			}
			return all
		}
	}
	without := func(accept func(name string) bool) func([]string) []string {
		return func(all []string) []string { return slices.DeleteFunc(all, accept) }
	}
	begins := func(prefix string) func(string) bool {
		return func(name string) bool { return strings.HasPrefix(name, prefix) }
	}
	contains := func(part string) func(string) bool {
		return func(name string) bool { return strings.Contains(name, part) }
	}
	tests := []struct {
		config string
		change func([]string) []string
		absent string
	}{
		{"", func(all []string) []string { return all }, ""},
		{"storage.k8s.io/v1beta1=true", func(all []string) []string { return all }, ""}, // removed in 1.37
		{"networking.k8s.io/v1beta1/servicecidrs=true", func(all []string) []string { return all }, ""},
		{"coordination.k8s.io/v1beta1=true", with("coordination.k8s.io/v1beta1/"), ""},
		{"api/beta=true", with("beta"), ""},
		{"api/all=true", with(""), ""},
		{"api/all=true,resource.k8s.io/v1beta2=false",
			func(all []string) []string { return without(begins("resource.k8s.io/v1beta2"))(with("")(all)) }, ""},
		{"api/beta=true,api/all=false", func(all []string) []string {
			return without(func(name string) bool {
				return !strings.Contains(name, "beta") || begins("apiext")(name)
			})(with("")(all))
		}, ""},
		{"api/beta=false", without(contains("beta")), ""},
		{"api/ga=false", without(func(name string) bool { return !strings.Contains(name, "beta") }), ""},
		{"api/alpha=true,api/legacy=true", with("alpha"), ""},
		{"batch/v1=false,batch/v1/jobs=true", without(begins("batch/v1/cronjobs")), ""},
		{"policy/v1/poddisruptionbudgets=false", without(begins("policy/")), ""},
		{"apiextensions.k8s.io/v1beta1=false,storagemigration.k8s.io/v1beta1=false", without(contains("beta")), ""},
		{"v1/pods=false", without(begins("v1/")), ""}, // as in Kubernetes
		{"/v1/pods=false", without(func(name string) bool { return name == "v1/pods" }), ""},
		{"admissionregistration.k8s.io/v1alpha1=true", with("admissionregistration.k8s.io/v1alpha1"), ""},
		{"resource.k8s.io/v1alpha3=true", with("resource.k8s.io/v1alpha3"), ""},
		{"scheduling.k8s.io/v1alpha3=true", with("scheduling.k8s.io/v1alpha3"), ""},
		{"scheduling.k8s.io/v1alpha3/podgroups=true", with("scheduling.k8s.io/v1alpha3/podgroups"), ""},
		{"batch/v1beta1=true,apps/v1beta1=true,node.k8s.io/v1beta1=false",
			func(all []string) []string { return all }, "apps/v1beta1,batch/v1beta1"},
	}
	for _, test := range tests {
		kinds := kinds.Resources()
		absent, err := parse(test.config).Apply(kinds, emulateNothing, "ClusterTrustBundle", "PodCertificateRequest",
			"GenericWorkload", "StorageVersionMigrator")
		if err != nil {
			t.Errorf("%s: %v", test.config, err)
		}
		if got := strings.Join(absent, ","); got != test.absent {
			t.Errorf("%s: %q is absent, want %q", test.config, got, test.absent)
		}
		want := test.change(slices.Clone(usual))
		slices.Sort(want)
		if got := served(kinds); !slices.Equal(got, want) {
			t.Errorf("%s: serves\n%s\nwant\n%s", test.config, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestRuntimeConfigGates checks that kinds behind feature gates are served only with an open gate, and that missing
// requested ones are reported.
func TestRuntimeConfigGates(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ config, open, absent, served string }{
		{"api/all=true", "", "", ""},
		{"certificates.k8s.io/v1beta1=true", "", "certificates.k8s.io/v1beta1/clustertrustbundles (feature gate " +
			"ClusterTrustBundle),certificates.k8s.io/v1beta1/podcertificaterequests (feature gate PodCertificateRequest)", ""},
		{"certificates.k8s.io/v1beta1/clustertrustbundles=true", "PodCertificateRequest",
			"certificates.k8s.io/v1beta1/clustertrustbundles (feature gate ClusterTrustBundle)",
			"certificates.k8s.io/v1/podcertificaterequests"},
		{"certificates.k8s.io/v1beta1/clustertrustbundles=true", "ClusterTrustBundle", "",
			"certificates.k8s.io/v1/clustertrustbundles,certificates.k8s.io/v1beta1/clustertrustbundles"},
		{"", "ClusterTrustBundle", "", "certificates.k8s.io/v1/clustertrustbundles"},
	} {
		all := kinds.Resources()
		absent, err := parse(test.config).Apply(all, emulateNothing, test.open)
		gated := slices.DeleteFunc(served(all), func(name string) bool {
			return !strings.Contains(name, "clustertrustbundles") && !strings.Contains(name, "podcertificaterequests")
		})
		got := strings.Join(absent, ",")
		if err != nil || got != test.absent || strings.Join(gated, ",") != test.served {
			t.Errorf("%q with %s: absent %q, served %q, %v", test.config, test.open, got, gated, err)
		}
	}
}

// TestRuntimeConfigTwins checks that events of one group are not served as the other's if that one is off.
func TestRuntimeConfigTwins(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]bool{"": true, "events.k8s.io/v1=false": false, "/v1/events=false": false} {
		kinds := kinds.Resources()
		if _, err := parse(config).Apply(kinds, emulateNothing); err != nil {
			t.Error(err)
		}
		for _, r := range kinds {
			if r.Plural == "events" && r.Served && (r.Cohabits.Resource != "") != want {
				t.Errorf("%s: events of %q are those of %v too", config, r.Group, r.Cohabits)
			}
		}
	}
}
