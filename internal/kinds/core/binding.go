package core

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

func bindingKind() rule.Kind {
	return rule.Of[corev1.Binding](rule.Kind{Group: coreV1, Kind: "Binding", Plural: "bindings", Virtual: true})
}
