package kinds_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/kinds"
)

// TestParseEmulation checks errors against kube-apiserver 1.37.2.
func TestParseEmulation(t *testing.T) {
	t.Parallel()
	tests := []struct{ emulated, compatible, want string }{
		{"", "", "1.37 1.36"},
		{"1.37", "", "1.37 1.36"},
		{"1.36", "", "1.36 1.35"},
		{"1.34", "", "1.34 1.34"},
		{"v1.34", "", "1.34 1.34"},
		{" kube = v1.35 ", "", "1.35 1.34"},
		{"1.36.0", "", "1.36 1.35"},
		{"1.37", "1.37", "1.37 1.37"},
		{"1.37", "kube=1.34", "1.37 1.34"},
		{"", "1.34", "1.37 1.34"},
		{"1.33", "", "[emulation version 1.33 is not between [1.34, 1.37.0], " +
			"minCompatibilityVersion version 1.34 is not between [1.34, 1.33]]"},
		{"1.38", "", "emulation version 1.38 is not between [1.34, 1.37.0]"},
		{"1.34", "1.35", "minCompatibilityVersion version 1.35 is not between [1.34, 1.34]"},
		{"1.37", "1.33", "minCompatibilityVersion version 1.33 is not between [1.34, 1.37]"},
		{"abc", "", `could not parse "abc" as version`},
		{"1.37", "abc", `could not parse "abc" as version`},
		{"1.34.2", "", "patch version not allowed, got: kube=1.34.2"},
		{"1.34,kube=1.35", "", "duplicate version flag, kube=1.34 and kube=1.35"},
		{"foo=1.34", "", "component not registered: foo"},
	}
	list := func(text string) []string {
		if text == "" {
			return nil
		}
		return strings.Split(text, ",")
	}
	for _, test := range tests {
		e, err := kinds.ParseEmulation(list(test.emulated), list(test.compatible))
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = e.Version.String() + " " + e.MinCompatibility.String()
		}
		if got != test.want {
			t.Errorf("%q %q: %q, want %q", test.emulated, test.compatible, got, test.want)
		}
	}
}

// changed returns the difference in served versions between a configuration and the default: "-" for missing, "+" for
// additional ones. It omits serve's own versions, which are off by default in kube-apiserver.
func changed(t *testing.T, config, release string, forward, runtimeForward bool) (string, error) {
	t.Helper()
	e, err := kinds.ParseEmulation([]string{release}, nil)
	if err != nil {
		t.Fatal(err)
	}
	e.ForwardCompatible, e.RuntimeConfigForwardCompatible = forward, runtimeForward
	all := kinds.Resources()
	_, err = parse(config).Apply(all, e, openGates(e)...)
	before, now := served(kinds.Resources()), served(all)
	var out []string
	for _, name := range before {
		if !slices.Contains(now, name) {
			out = append(out, "-"+name)
		}
	}
	for _, name := range now {
		if !slices.Contains(before, name) {
			out = append(out, "+"+name)
		}
	}
	return strings.NewReplacer("admissionregistration.k8s.io", "AR", "certificates.k8s.io", "CE",
		"resource.k8s.io", "RE", "networking.k8s.io", "NE",
		"coordination.k8s.io", "CO", "admissionpolic", "AP", "storagemigration.k8s.io", "SM", "storage.k8s.io", "ST").
		Replace(strings.Join(out, " ")), err
}

// openGates returns the feature gates that a release opens by default.
func openGates(e kinds.Emulation) (open []string) {
	for _, name := range kinds.Features() {
		if e.Has(name, nil) {
			open = append(open, name)
		}
	}
	return open
}

// TestEmulation compares the served versions with the discovery of kube-apiserver 1.37.2 with the same flags, as far as
// this server has them.
func TestEmulation(t *testing.T) {
	t.Parallel()
	const (
		noMutation = "-AR/v1/mutatingAPies -AR/v1/mutatingAPybindings"
		noNew      = "-CE/v1/clustertrustbundles -CE/v1/podcertificaterequests -RE/v1/devicetaintrules -SM/v1/storageversionmigrations"
		mutation   = "+AR/v1beta1/mutatingAPies +AR/v1beta1/mutatingAPybindings"
		betas      = "+CE/v1beta1/clustertrustbundles +CE/v1beta1/podcertificaterequests"
		candidates = "+CO/v1beta1/leasecandidates"
		network    = "+NE/v1beta1/ipaddresses +NE/v1beta1/servicecidrs"
		devices    = "+RE/v1beta1/deviceclasses +RE/v1beta1/resourceclaims +RE/v1beta1/resourceclaimtemplates +RE/v1beta1/resourceslices " +
			"+RE/v1beta2/deviceclasses +RE/v1beta2/resourceclaims +RE/v1beta2/resourceclaimtemplates +RE/v1beta2/resourceslices"
		withTaints = "+RE/v1beta1/deviceclasses +RE/v1beta1/resourceclaims +RE/v1beta1/resourceclaimtemplates +RE/v1beta1/resourceslices " +
			"+RE/v1beta2/deviceclasses +RE/v1beta2/devicetaintrules +RE/v1beta2/resourceclaims +RE/v1beta2/resourceclaimtemplates +RE/v1beta2/resourceslices"
		migrations = "+SM/v1beta1/storageversionmigrations"
		classes    = "+ST/v1beta1/volumeattributesclasses"
	)
	tests := []struct {
		release, config         string
		forward, runtimeForward bool
		want                    []string
		err                     string
	}{
		{"1.37", "", false, false, []string{""}, ""},
		{"1.37", "api/beta=true", false, false,
			[]string{mutation, betas, candidates, withTaints, migrations}, ""},
		{"1.36", "", false, false, []string{noNew}, ""},
		{"1.36", "api/beta=true", false, false,
			[]string{noNew, mutation, candidates, network, withTaints, classes}, ""},
		{"1.35", "", false, false, []string{noMutation, noNew}, ""},
		{"1.34", "", false, false, []string{noMutation, noNew}, ""},
		{"1.34", "api/beta=true", false, false,
			[]string{noMutation, noNew, mutation, candidates, network, devices, classes}, ""},
		{"1.34", "api/beta=true", true, false, []string{noNew, mutation, candidates, network, devices, classes}, ""},
		{"1.36", "resource.k8s.io/v1beta2=true", true, false, []string{"-CE/v1/clustertrustbundles -CE/v1/podcertificaterequests " +
			"-SM/v1/storageversionmigrations +RE/v1beta2/deviceclasses +RE/v1beta2/devicetaintrules " +
			"+RE/v1beta2/resourceclaims +RE/v1beta2/resourceclaimtemplates +RE/v1beta2/resourceslices"}, ""},
		{"1.36", "resource.k8s.io/v1=true", false, true,
			[]string{"-CE/v1/clustertrustbundles -CE/v1/podcertificaterequests -SM/v1/storageversionmigrations"}, ""},
		{"1.36", "storagemigration.k8s.io/v1=true", false, false, []string{noNew},
			"cannot enable version storagemigration.k8s.io/v1 in runtime-config because all the resources have been " +
				"introduced after the current version 1.36. Consider setting " +
				"--runtime-config-emulation-forward-compatible=true"},
		{"1.36", "certificates.k8s.io/v1=true", false, false, []string{noNew}, ""},
		{"1.35", "admissionregistration.k8s.io/v1/mutatingadmissionpolicies=true", false, false, nil,
			"cannot enable resource admissionregistration.k8s.io/v1, Resource=mutatingadmissionpolicies in " +
				"runtime-config because it is introduced at 1.36 after the current version 1.35. Consider setting " +
				"--runtime-config-emulation-forward-compatible=true"},
	}
	for _, test := range tests {
		got, err := changed(t, test.config, test.release, test.forward, test.runtimeForward)
		if err == nil && test.err == "" || err != nil && err.Error() == test.err {
			if want := strings.Join(test.want, " "); test.want != nil && got != want {
				t.Errorf("%s %s: %s\nwant %s", test.release, test.config, got, want)
			}
			continue
		}
		t.Errorf("%s %s: %v, want %s", test.release, test.config, err, test.err)
	}
}

// Objects are stored as the oldest release that shares the store can read them.
func TestEmulationStores(t *testing.T) {
	t.Parallel()
	const mutation = "mutatingadmissionpolicies=v1beta1 mutatingadmissionpolicybindings=v1beta1"
	for compatible, want := range map[string]string{"1.37": "", "1.36": "", "1.35": mutation, "1.34": mutation} {
		e, err := kinds.ParseEmulation(nil, []string{compatible})
		if err != nil {
			t.Fatal(err)
		}
		all, plain := kinds.Resources(), map[string]bool{}
		for _, r := range all {
			plain[r.Qualified()] = r.Form == nil || r.Form.Version == ""
		}
		if _, err := (kinds.RuntimeConfig{}).Apply(all, e, openGates(e)...); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range all {
			if r.Form == nil || r.Form.Version == "" || !plain[r.Qualified()] {
				continue
			}
			got = append(got, r.Plural+"="+r.Form.Version)
			raw := fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"name":"x"}}`, r.APIVersion(r.Storage), r.Kind)
			stored, _ := r.Form.Encode(raw)
			back, err := r.Form.Decode(stored)
			if err != nil || string(back) != string(raw) ||
				!strings.Contains(string(stored), `"`+r.Group+"/"+r.Form.Version+`"`) {
				t.Errorf("%s: stored %s, read %s (%v)", r.Plural, stored, back, err)
			}
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("compatible with %s: %s\nwant %s", compatible, strings.Join(got, " "), want)
		}
	}
}

func TestEmulationTexts(t *testing.T) {
	t.Parallel()
	migrations := schema.GroupVersionResource{
		Group: "storagemigration.k8s.io", Version: "v1", Resource: "storageversionmigrations",
	}
	for _, release := range []string{"1.34", "1.36"} {
		e, err := kinds.ParseEmulation([]string{release}, nil)
		if err != nil || e.Serves(nil, migrations) || !e.Emulates() {
			t.Errorf("%s: %v, migrations are served: %v", release, err, e.Serves(nil, migrations))
		}
		all := kinds.Resources()
		if _, err := parse("api/alpha=true").Apply(all, e, openGates(e)...); err != nil {
			t.Fatal(err)
		}
		const want = "admissionregistration.k8s.io/v1alpha1 coordination.k8s.io/v1alpha2 " +
			"internal.apiserver.k8s.io/v1alpha1 resource.k8s.io/v1alpha3"
		if got := strings.Join(e.Alpha(all), " "); got != want {
			t.Errorf("%s: alpha %s", release, got)
		}
	}
}
