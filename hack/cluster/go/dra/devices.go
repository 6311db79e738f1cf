package main

import (
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
)

const (
	gpuDriver = "gpu.local-cluster"
	cpuDriver = "cpu.local-cluster"
	model     = "pretended"
)

// thing is a device, and the variable of the containers that get it.
type thing struct {
	name       string
	attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute
	variable   string
}

func number(value int) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{IntValue: new(int64(value))}
}

func word(value string) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{StringValue: new(value)}
}

// half tells on which of two NUMA nodes one of so many is.
func half(index, of int) int { return index * 2 / of }

// gpus are whole ones, and then the slices of one more, which is nothing but its slices; all are numbered on.
func gpus(node string, whole int, slices []string) []thing {
	var found []thing
	for index := range whole {
		uuid := fmt.Sprintf("GPU-%s-%d", node, index)
		found = append(found, thing{
			name: fmt.Sprintf("gpu-%d", index),
			attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				"type":  word("gpu"),
				"index": number(index),
				"uuid":  word(uuid),
				"model": word(model),
				"numa":  number(half(index, whole)),
			},
			variable: fmt.Sprintf("GPU_DEVICE_%d=%s", index, uuid),
		})
	}
	for place, profile := range slices {
		index := whole + place
		uuid := fmt.Sprintf("MIG-%s-%d", node, index)
		found = append(found, thing{
			name: fmt.Sprintf("mig-%d", index),
			attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				"type":    word("mig"),
				"index":   number(index),
				"uuid":    word(uuid),
				"model":   word(model),
				"profile": word(profile),
				"parent":  word(fmt.Sprintf("GPU-%s-%d", node, whole)),
			},
			variable: fmt.Sprintf("MIG_DEVICE_%d=%s", index, uuid),
		})
	}
	return found
}

// cpus have one thread in each core, and one socket.
func cpus(node string, count int) []thing {
	var found []thing
	for id := range count {
		found = append(found, thing{
			name: fmt.Sprintf("cpu-%d", id),
			attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				"cpuID":      number(id),
				"coreID":     number(id),
				"socketID":   number(0),
				"numaNodeID": number(half(id, count)),
			},
			variable: fmt.Sprintf("CPU_DEVICE_%d=CPU-%s-%d", id, node, id),
		})
	}
	return found
}

func words(list string) []string {
	return strings.FieldsFunc(list, func(letter rune) bool { return letter == ',' })
}
