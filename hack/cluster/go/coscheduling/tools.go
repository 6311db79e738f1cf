//go:build tools

// Package tools pins the module whose PodGroup CRD is applied; nothing of it is built.
package tools

import _ "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
