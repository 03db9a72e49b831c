package schema

import (
	_ "github.com/bowsprit/bowsprit/internal/schema"
	_ "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	_ "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	_ "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	_ "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	_ "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	_ "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	_ "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	_ "k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	_ "k8s.io/apiserver/pkg/registry/generic"
	_ "k8s.io/client-go/kubernetes/scheme"
	_ "k8s.io/kube-openapi/pkg/validation/strfmt"
	_ "sigs.k8s.io/yaml"
)
