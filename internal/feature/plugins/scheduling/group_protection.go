package scheduling

import "github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"

// GroupProtection keeps groups of pods while they have pods that have not ended.
func GroupProtection(plugin.Config) []plugin.Rule {
	return []plugin.Rule{{
		Group: "scheduling.k8s.io", Plural: "podgroups", Operations: plugin.Creates,
		Mutate: plugin.Finalize("scheduling.k8s.io/podgroup-protection"),
	}}
}
