-- Layouts of packets: lists of fields, read in their order. No dissector names an offset.

local NAME = "trunkline_layout"
if package.loaded[NAME] then return package.loaded[NAME] end

local layout = {}

-- Values of a field that tells how a checksum was found.
layout.BAD, layout.GOOD, layout.UNVERIFIED, layout.ABSENT = 0, 1, 2, 3
layout.STATUS = { [0] = "Bad", [1] = "Good", [2] = "Unverified", [3] = "Not present" }
layout.NANOSECONDS = { " ns" }

-- Registers the fields of `proto`, each as { name, type, title, ... } with the further arguments of ProtoField.new.
-- Returns them by name; the filter of each begins with the name of the protocol.
function layout.fields(proto, prefix, list)
    local fields, array = {}, {}
    for _, one in ipairs(list) do
        local name, kind, title = one[1], one[2], one[3]
        local field = ProtoField[kind](prefix .. "." .. name, title, table.unpack(one, 4, 7))
        fields[name] = field
        array[#array + 1] = field
    end
    proto.fields = array
    return fields
end

-- The value of a field of this width, in octets.
local function value(range, width)
    if width > 4 then return range:uint64() end
    return range:uint()
end

-- Reads `tvb` from offset `at` up to `limit`, which lies within it, and adds what it reads to `tree`.
local Reader = {}
Reader.__index = Reader

function layout.reader(tvb, at, limit, tree)
    return setmetatable({ tvb = tvb, at = at, limit = limit, tree = tree }, Reader)
end

-- The octets that are left.
function Reader:left()
    return self.limit - self.at
end

-- Passes over `count` octets and returns their range; nil if there are fewer, or none.
function Reader:take(count)
    if count < 1 or count > self:left() then return nil end
    local range = self.tvb(self.at, count)
    self.at = self.at + count
    return range
end

-- Adds the next field. Returns its value and its tree item; nil if the packet ends before it does.
function Reader:field(field, width)
    local range = self:take(width)
    if not range then return nil end
    return value(range, width), self.tree:add(field, range)
end

-- Adds `count` octets as one field; none at all are no field.
function Reader:octets(field, count)
    local range = self:take(count)
    return range and self.tree:add(field, range)
end

-- Adds the fields of a list of { name, width, names of bits }, which `fields` holds. Returns their values and items by
-- name; nil as the first if the packet ends within them.
function Reader:read(fields, list)
    local values, items = {}, {}
    for _, one in ipairs(list) do
        local name, width, bits = one[1], one[2], one[3] or {}
        values[name], items[name] = self:field(fields[name], width)
        if values[name] == nil then return nil, items end
        for _, bit in ipairs(bits) do
            items[name]:add(fields[bit], self.tvb(self.at - width, width))
        end
    end
    return values, items
end

-- The Internet checksum (RFC 1071) of a string; 0 of one that holds its own right checksum.
function layout.checksum(octets)
    local sum = 0
    for at = 1, #octets - 1, 2 do
        local high, low = octets:byte(at, at + 1)
        sum = sum + high * 256 + low
    end
    if #octets % 2 == 1 then sum = sum + octets:byte(#octets) * 256 end
    while sum > 0xffff do
        sum = sum % 0x10000 + math.floor(sum / 0x10000)
    end
    return 0xffff - sum
end

-- Makes an item one that Wireshark works out, which does not stand in the packet.
function layout.generated(item)
    item:set_generated(true)
    return item
end

package.loaded[NAME] = layout
return layout
