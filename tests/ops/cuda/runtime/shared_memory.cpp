// Shared memory as threads and warps access it, and cp.async: bank conflicts, alignment and limits are checked. Copies arrive where they are issued,
// or where their thread waits for them.
#include "shared_memory.h"

#include <algorithm>

static unsigned char nowhere[128];

unsigned char* in_shared(Block& of, unsigned address, unsigned bytes) {
    if (address < shared_base || address + bytes > shared_base + of.shared.size()) {
        fail("outside of shared memory: " + std::to_string(address));
        return nowhere;
    }
    if (address % bytes) {
        fail("an address in shared memory is not a multiple of " + std::to_string(bytes));
    }
    return of.shared.data() + (address - shared_base);
}
// As many threads at a time as fill 128 bytes must touch each bank of 4 bytes once (or the same 4 bytes).
void check_banks(const Fiber* lanes, unsigned bytes, const char* what) {
    const unsigned phase = std::min(WARP, 128 / bytes);
    for (unsigned first = 0; first < WARP; first += phase) {
        long long bank[32];
        std::fill(bank, bank + 32, -1);
        for (unsigned i = first; i < first + phase; ++i) {
            const unsigned address = lanes[i].lane.address;
            for (unsigned number = address / 4; number <= (address + bytes - 1) / 4; ++number) {
                if (bank[number % 32] >= 0 && bank[number % 32] != number) {
                    fail(std::string("a bank conflict of ") + what);
                }
                bank[number % 32] = number;
            }
        }
    }
}
void check_inside(const void* from, unsigned bytes, unsigned first_range, const char* what) {
    const unsigned char* begin = static_cast<const unsigned char*>(from);
    bool inside = now.ranges <= first_range;
    for (unsigned i = first_range; i < now.ranges; ++i) {
        inside |= begin >= now.readable[2 * i] && begin + bytes <= now.readable[2 * i + 1];
    }
    if (!inside) {
        fail(std::string(what) + " reads outside of the matrices");
    }
}
static void check_readable(const void* from, unsigned bytes, unsigned first_range, const char* what) {
    if (reinterpret_cast<std::uintptr_t>(from) % bytes) {
        fail(std::string(what) + " reads from an address that is not aligned");
    }
    check_inside(from, bytes, first_range, what);
}

namespace emulated {
unsigned dynamic_shared_memory() { return shared_base; }
void* dynamic_shared_pointer() { return block().shared.data(); }
unsigned address_of(const void* pointer) {
    if (pointer != memory) {
        fail("the address of what is not dynamic shared memory");
    }
    return shared_base;
}
void barrier_of_threads(unsigned number, unsigned threads) {
    if (number >= 16) {
        fail("a block has 16 barriers");
    }
    if (number > 0 && threads == WARPGROUP && number != threadIdx.x / WARPGROUP + 1) {
        fail("the barrier of another warpgroup");
    }
    meet(block().of_threads[number], threads);
}
void warp_barrier() {
    meet(block().of_warps[warp_of_block()], std::min(WARP, now.threads_x * now.threads_y - warp_of_block() * WARP));
}

void store(unsigned to, const void* value, unsigned bytes) {
    together({to, {}, nullptr, value}, [=](Fiber* lanes) {
        check_banks(lanes, bytes, "a store");
        for (unsigned i = 0; i < WARP; ++i) {
            memcpy(in_shared(lanes[i].lane.address, bytes), lanes[i].lane.a, bytes);
            lanes[i].unfenced.push_back({lanes[i].lane.address, lanes[i].lane.address + bytes});
        }
    });
}
void load(void* value, unsigned from, unsigned bytes) {
    together({from, {}, value}, [=](Fiber* lanes) {
        check_banks(lanes, bytes, "a load");
        for (unsigned i = 0; i < WARP; ++i) {
            memcpy(lanes[i].lane.to, in_shared(lanes[i].lane.address, bytes), bytes);
        }
    });
}
// PTX ISA, "ldmatrix": thread 8 i + r gives row r of matrix i.
void ldmatrix(unsigned* to, unsigned row, bool transposed) {
    together({row, {}, to}, [=](Fiber* lanes) {
        check_banks(lanes, 16, "ldmatrix");
        for (unsigned matrix = 0; matrix < 4; ++matrix) {
            const unsigned char* rows[8];
            for (unsigned r = 0; r < 8; ++r) {
                rows[r] = in_shared(lanes[8 * matrix + r].lane.address, 16);
            }
            for (unsigned i = 0; i < WARP; ++i) {
                unsigned char* value = reinterpret_cast<unsigned char*>(static_cast<unsigned*>(lanes[i].lane.to) + matrix);
                if (transposed) {
                    memcpy(value, rows[2 * (i % 4)] + 2 * (i / 4), 2);
                    memcpy(value + 2, rows[2 * (i % 4) + 1] + 2 * (i / 4), 2);
                } else {
                    memcpy(value, rows[i / 4] + 4 * (i % 4), 4);
                }
            }
        }
    });
}
// PTX ISA, "stmatrix": thread 8 i + r gives the address of row r of matrix i, of which thread t holds two elements of row t / 4.
// Transposed, thread 8 i + r gives the address of column r.
void stmatrix(unsigned to, const unsigned* values, bool transposed) {
    together({to, {values[0], values[1], values[2], values[3]}}, [transposed](Fiber* lanes) {
        check_banks(lanes, 16, "stmatrix");
        for (unsigned matrix = 0; matrix < 4; ++matrix) {
            for (unsigned i = 0; i < WARP; ++i) {
                for (unsigned half = 0; half < 2; ++half) {
                    const unsigned row = i / 4, column = i % 4 * 2 + half;
                    const unsigned at = lanes[8 * matrix + (transposed ? column : row)].lane.address;
                    const char* value = reinterpret_cast<const char*>(&lanes[i].lane.values[matrix]) + 2 * half;
                    memcpy(in_shared(at, 16) + 2 * (transposed ? row : column), value, 2);
                    lanes[i].unfenced.push_back({at, at + 16});
                }
            }
        }
    });
}
float of_lane_with(float value, int mask) {
    float other;
    together({(unsigned)mask, {__builtin_bit_cast(unsigned, value)}, &other}, [](Fiber* lanes) {
        for (unsigned i = 0; i < WARP; ++i) {
            memcpy(lanes[i].lane.to, lanes[i ^ lanes[i].lane.address].lane.values, 4);
        }
    });
    return other;
}
float of_lane(float value, int lane) {
    float other;
    together({(unsigned)lane, {__builtin_bit_cast(unsigned, value)}, &other}, [](Fiber* lanes) {
        for (unsigned i = 0; i < WARP; ++i) {
            memcpy(lanes[i].lane.to, lanes[lanes[i].lane.address].lane.values, 4);
        }
    });
    return other;
}
void prefetch(const void* from) { check_inside(from, 1, 0, "a prefetch"); }
int warp_sum(int value) {
    int sum;
    together({0, {(unsigned)value}, &sum}, [](Fiber* lanes) {
        unsigned total = 0;
        for (unsigned i = 0; i < WARP; ++i) {
            total += lanes[i].lane.values[0];
        }
        for (unsigned i = 0; i < WARP; ++i) {
            memcpy(lanes[i].lane.to, &total, 4);
        }
    });
    return sum;
}

void store_alone(unsigned to, const void* value, unsigned bytes) {
    memcpy(in_shared(to, bytes), value, bytes);
    fiber().unfenced.push_back({to, to + bytes});
}
void load_alone(void* value, unsigned from, unsigned bytes, int of_block) {
    Block& of = of_block < 0 ? block() : blocks[of_block];
    if (!of.running) {
        fail("a block of the cluster has ended");
    }
    memcpy(value, in_shared(of, from, bytes), bytes);
}
// Only from the second range: what each block reads once.
void load_once(void* value, const void* from, unsigned bytes) {
    check_readable(from, bytes, 1, "a load");
    memcpy(value, from, bytes);
}
bool is_last_to_arrive(unsigned* arrived, unsigned parts) {
    static bool is_last;
    __syncthreads();
    if (threadIdx.x == 0) {
        is_last = ++*arrived == parts;
        if (is_last) {
            *arrived = 0;
        }
    }
    __syncthreads();
    return is_last;
}

static void begin_copy(Fiber& of, const Copy& copy) {
    if (copy.valid) {
        check_readable(copy.from, copy.bytes, 0, "a copy");
    }
    if (now.at_once) {
        copy.run();
    } else {
        of.copies_begun.push_back(copy);
    }
}
void copy_async(unsigned to, const void* from, unsigned bytes, bool valid) {
    together({to, {}, nullptr, from, nullptr, valid}, [=](Fiber* lanes) {
        check_banks(lanes, bytes, "a copy");
        for (unsigned i = 0; i < WARP; ++i) {
            const Lane& lane = lanes[i].lane;
            begin_copy(lanes[i], {in_shared(lane.address, bytes), lane.a, bytes, lane.valid});
        }
    });
}
void copy_async_alone(void* to, const void* from, unsigned bytes, bool valid) {
    const long long offset = static_cast<unsigned char*>(to) - block().shared.data();
    if (offset < 0 || offset + bytes > (long long)block().shared.size() || offset % bytes) {
        fail("a copy to a wrong place in shared memory");
    }
    begin_copy(fiber(), {static_cast<unsigned char*>(to), from, bytes, valid});
}
void commit_copies() {
    fiber().copies.push_back(std::move(fiber().copies_begun));
    fiber().copies_begun.clear();
}
void wait_for_copies(unsigned pending) {
    auto& copies = fiber().copies;
    for (; copies.size() > pending; copies.pop_front()) {
        for (const Copy& copy : copies.front()) {
            copy.run();
        }
    }
}
}  // namespace emulated
